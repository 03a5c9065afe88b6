/* Status codes of everything below the OpenCL API: zero, or one of these negative values, grouped
 * by the largest thing that the error kills. The API edge maps them to cl_int (status_to_cl). */
#ifndef SPANCL_BASE_STATUS_H
#define SPANCL_BASE_STATUS_H

#define SP_NODISCARD __attribute__((warn_unused_result))

enum sp_status {
        SP_OK = 0,

        /* The call fails; nothing changed. */
        SP_E_NOMEM = -10001,  /* host memory */
        SP_E_INVAL = -10002,  /* a value out of its range */
        SP_E_AGAIN = -10003,  /* would block; call again later */
        SP_E_LIMIT = -10004,  /* a quota or a table is full */
        SP_E_UNSUPP = -10005, /* not supported by this build, peer or device */
        SP_E_NOENT = -10006,  /* no such object, file or host */
        SP_E_BUSY = -10007,   /* the object is in use */

        /* The session dies. */
        SP_E_PROTO = -10101,   /* the other side broke the protocol */
        SP_E_VERSION = -10102, /* no common protocol version */
        SP_E_AUTH = -10103,    /* wrong key or token */
        SP_E_NODEV = -10104,   /* the server has no devices */
        SP_E_GONE = -10105,    /* the session ended on the other side */

        /* The link dies; the session may live on. */
        SP_E_LINK = -10201,    /* connection closed or reset */
        SP_E_REFUSED = -10202, /* nobody listens there */
        SP_E_TIMEOUT = -10203, /* no answer in time */
        SP_E_HOST = -10204,    /* the host name does not resolve */
        SP_E_UNREACH = -10205, /* no route leads to the host, or it is not in its network */
};

/* A short English text for `status`; never NULL; static storage. */
const char *status_text(int status);

#endif
