from .accounts import (
    OF_PROVIDER as OF_PROVIDER,
    Accounts as Accounts,
    Actor as Actor,
    can_administer_all as can_administer_all,
)
from .audit import AuditCheck as AuditCheck, chained as chained, pruned as pruned, verify as verify
from .authentication import Authenticator as Authenticator, SignedIn as SignedIn, who as who
from .credentials import csrf_of as csrf_of, digest as digest, is_same as is_same
from .oidc import (
    OidcClient as OidcClient,
    Provider as Provider,
    SignInRequest as SignInRequest,
    refusal_of as refusal_of,
)
from .permissions import (
    ANONYMOUS as ANONYMOUS,
    LOOPBACK as LOOPBACK,
    Grants as Grants,
    Permission as Permission,
    Principal as Principal,
    PrincipalKind as PrincipalKind,
    Role as Role,
    allows as allows,
    allows_somewhere as allows_somewhere,
    local_principal as local_principal,
    namespaces as namespaces,
    parse_grants as parse_grants,
    written as written,
)
from .ports import AccessState as AccessState, SecretState as SecretState
from .rate_limit import Backoff as Backoff, Rate as Rate, network_of as network_of, remember as remember
from .records import (
    Act as Act,
    AuditEntry as AuditEntry,
    SealedSecret as SealedSecret,
    Session as Session,
    Token as Token,
    User as User,
)
from .secrets import (
    Backend as Backend,
    FileSecrets as FileSecrets,
    GivenSecrets as GivenSecrets,
    Secrets as Secrets,
    TableSecrets as TableSecrets,
    make_key as make_key,
    parse_key as parse_key,
    read_key as read_key,
)
