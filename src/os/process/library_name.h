/* The names of files of libraries, as the system has them. */
#ifndef SPANCL_OS_PROCESS_LIBRARY_NAME_H
#define SPANCL_OS_PROCESS_LIBRARY_NAME_H

#define LIBRARY_NAME(name) "lib" name ".so" /* a module of this project */
#define LIBRARY_SUFFIX     ".so"
#define LIBRARY_CLIENT     "libspancl.so.1"
#define LIBRARY_CLIENT_ANY "libspancl."     /* the client's names begin with it */
#define LIBRARY_LOADER     "libOpenCL.so.1" /* OpenCL's ICD loader */
#define LIBRARY_SEPARATOR  ":"              /* between paths in variables */

#endif
