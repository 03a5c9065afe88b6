/* Macros for the files that define OpenCL C's built-in functions. From a function of scalars they
 * make the functions for all types and lengths of vectors, under the names by which the compiler
 * declares and calls them. */
#define OV __attribute__((overloadable))

#define EACH_INT(M) M(char) M(uchar) M(short) M(ushort) M(int) M(uint) M(long) M(ulong)
#define EACH_LENGTH(M, ...) \
        M(2, __VA_ARGS__) M(3, __VA_ARGS__) M(4, __VA_ARGS__) M(8, __VA_ARGS__) M(16, __VA_ARGS__)

/* An element of a vector in memory: the loops stay loops. */
#define AT(T, v, i) (((private T *)&(v))[i])

/* R fn(T) from that of scalars, element by element. */
#define VECTOR1_N(n, R, fn, A)                         \
        R##n OV fn(A##n a)                             \
        {                                              \
                R##n r;                                \
                for (int i = 0; i < n; i++)            \
                        AT(R, r, i) = fn(AT(A, a, i)); \
                return r;                              \
        }
#define VECTOR2_N(n, R, fn, A, B)                                   \
        R##n OV fn(A##n a, B##n b)                                  \
        {                                                           \
                R##n r;                                             \
                for (int i = 0; i < n; i++)                         \
                        AT(R, r, i) = fn(AT(A, a, i), AT(B, b, i)); \
                return r;                                           \
        }
#define VECTOR3_N(n, R, fn, A, B, C)                                             \
        R##n OV fn(A##n a, B##n b, C##n c)                                       \
        {                                                                        \
                R##n r;                                                          \
                for (int i = 0; i < n; i++)                                      \
                        AT(R, r, i) = fn(AT(A, a, i), AT(B, b, i), AT(C, c, i)); \
                return r;                                                        \
        }
/* The second one a scalar, or the second and third. */
#define MIXED2_N(n, R, fn, A, B)                          \
        R##n OV fn(A##n a, B b)                           \
        {                                                 \
                R##n r;                                   \
                for (int i = 0; i < n; i++)               \
                        AT(R, r, i) = fn(AT(A, a, i), b); \
                return r;                                 \
        }
#define MIXED3_N(n, R, fn, A, B, C)                          \
        R##n OV fn(A##n a, B b, C c)                         \
        {                                                    \
                R##n r;                                      \
                for (int i = 0; i < n; i++)                  \
                        AT(R, r, i) = fn(AT(A, a, i), b, c); \
                return r;                                    \
        }
#define VECTOR1(...) EACH_LENGTH(VECTOR1_N, __VA_ARGS__)
#define VECTOR2(...) EACH_LENGTH(VECTOR2_N, __VA_ARGS__)
#define VECTOR3(...) EACH_LENGTH(VECTOR3_N, __VA_ARGS__)
#define MIXED2(...)  EACH_LENGTH(MIXED2_N, __VA_ARGS__)
#define MIXED3(...)  EACH_LENGTH(MIXED3_N, __VA_ARGS__)
