/* Functions of float for builtins.cl, C on both sides. */
#ifndef SPANCL_RISCV_MATH_H
#define SPANCL_RISCV_MATH_H

float rv_fabs(float x);
float rv_copysign(float x, float y);
float rv_sqrt(float x);
float rv_trunc(float x);
float rv_floor(float x);
float rv_ceil(float x);
float rv_round(float x);
float rv_rint(float x);
float rv_ldexp(float x, int n);
int rv_ilogb(float x);
float rv_logb(float x);
float rv_frexp(float x, int *exp);
float rv_modf(float x, float *whole);
float rv_fract(float x, float *whole);
float rv_fmod(float x, float y);
float rv_remquo(float x, float y, int *quotient);
float rv_remainder(float x, float y);
float rv_nextafter(float x, float y);
float rv_fma(float x, float y, float z);
float rv_exp(float x);
float rv_exp2(float x);
float rv_exp10(float x);
float rv_expm1(float x);
float rv_log(float x);
float rv_log2(float x);
float rv_log10(float x);
float rv_log1p(float x);
float rv_pow(float x, float y);
float rv_powr(float x, float y);
float rv_pown(float x, int n);
float rv_rootn(float x, int n);
float rv_cbrt(float x);
float rv_rsqrt(float x);
float rv_hypot(float x, float y);
float rv_sinh(float x);
float rv_cosh(float x);
float rv_tanh(float x);
float rv_asinh(float x);
float rv_acosh(float x);
float rv_atanh(float x);
float rv_sin(float x);
float rv_cos(float x);
float rv_tan(float x);
float rv_sinpi(float x);
float rv_cospi(float x);
float rv_tanpi(float x);
float rv_atan(float x);
float rv_atan2(float y, float x);
float rv_asin(float x);
float rv_acos(float x);
float rv_atanpi(float x);
float rv_atan2pi(float y, float x);
float rv_asinpi(float x);
float rv_acospi(float x);
float rv_from_half(unsigned short h);
unsigned short rv_to_half(float f, int how);

#endif
