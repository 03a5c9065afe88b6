/* The names of files of libraries, as the system has them. */
#ifndef SPANCL_OS_MACOS_PROCESS_LIBRARY_NAME_H
#define SPANCL_OS_MACOS_PROCESS_LIBRARY_NAME_H

#define LIBRARY_NAME(name) "lib" name ".so" /* a module of this project */
#define LIBRARY_SUFFIX     ".dylib"
#define LIBRARY_CLIENT     "libspancl.1.dylib"
#define LIBRARY_CLIENT_ANY "libspancl."        /* the client's names begin with it */
#define LIBRARY_LOADER     "libOpenCL.1.dylib" /* OpenCL's ICD loader */
#define LIBRARY_SEPARATOR  ":"                 /* between paths in variables */

#endif
