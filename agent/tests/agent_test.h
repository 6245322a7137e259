/* agent_test.h - what the tests of the agent share.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SLINC_AGENT_TESTS_AGENT_TEST_H
#define SLINC_AGENT_TESTS_AGENT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

#endif
