from .app import create_app as create_app
from .caller import Call as Call, WebCaller as WebCaller, WebServices as WebServices, caller_of as caller_of
from .listeners import listen as listen, listen_beside as listen_beside, reserve as reserve, url_of as url_of
from .problems import Problem as Problem, problem_of as problem_of
from .responses import Document as Document, Stream as Stream, Watch as Watch
from .routes import Paged as Paged, Routes as Routes, check_policies as check_policies
from .server import Serving as Serving, serve as serve
from .streams import Streams as Streams
from .threads import FairThreads as FairThreads, in_slow_thread as in_slow_thread, in_thread as in_thread
