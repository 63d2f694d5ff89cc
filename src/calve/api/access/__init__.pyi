from .authentication import CSRF as CSRF, FORMS as FORMS, check_form as check_form, page_token as page_token
from .control import AccessControl as AccessControl
from .cookies import cookie_in as cookie_in, set_cookie as set_cookie
from .oidc import ProviderHttp as ProviderHttp, relative as relative
from .origins import Rules as Rules, rules as rules
from .requests import RequestInfo as RequestInfo
from .routes import ROUTERS as ROUTERS, guarded as guarded
from .sign_in import (
    Bootstrap as Bootstrap,
    ControlDep as ControlDep,
    PrincipalDep as PrincipalDep,
    RequestDep as RequestDep,
    SignIn as SignIn,
    bootstrapped as bootstrapped,
    set_session as set_session,
    signed_in as signed_in,
    signed_out as signed_out,
)
