/* The header that every unit test includes: cmocka, which wants these four before it. */
#ifndef SPANCL_TESTS_CHECK_H
#define SPANCL_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TEST(name) static void name(void **state)

#endif
