#include "base/status.h"

const char *status_text(int status)
{
        switch (status) {
        case SP_OK:
                return "ok";
        case SP_E_NOMEM:
                return "out of memory";
        case SP_E_INVAL:
                return "invalid value";
        case SP_E_AGAIN:
                return "try again";
        case SP_E_LIMIT:
                return "limit reached";
        case SP_E_UNSUPP:
                return "not supported";
        case SP_E_NOENT:
                return "not found";
        case SP_E_BUSY:
                return "busy";
        case SP_E_PROTO:
                return "protocol error";
        case SP_E_VERSION:
                return "no common protocol version";
        case SP_E_AUTH:
                return "not authorised";
        case SP_E_NODEV:
                return "the server has no OpenCL devices";
        case SP_E_GONE:
                return "the session has ended";
        case SP_E_LINK:
                return "connection lost";
        case SP_E_REFUSED:
                return "connection refused";
        case SP_E_TIMEOUT:
                return "timed out";
        case SP_E_HOST:
                return "host name does not resolve";
        case SP_E_UNREACH:
                return "host unreachable";
        default:
                return "unknown error";
        }
}
