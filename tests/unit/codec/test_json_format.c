/* test_json_format.c - values put into JSON cannot change its shape. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/json_format.h"
#include "parsed.h"

static void values_are_put_in_escaped(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = parsed("{'k':[1,2]}");
    struct json_mut *value =
        json_format(build, "{'s':%s,'d':%d,'l':%l,'b':%b,'j':%j,'m':%m,'n':[%s,%j,%m]}",
                    "a\",'x':\"b", -3, INT64_C(1) << 40, true, json_get(json_root(doc), "k"),
                    json_new_str(build, STR("deep")), NULL, NULL, NULL);
    auto_buf struct buf text = { .max = 4096 };

    json_mut_write(value, &text);
    assert_string_equal(buf_text(&text),
                        "{\"s\":\"a\\\",'x':\\\"b\",\"d\":-3,\"l\":1099511627776,\"b\":true,"
                        "\"j\":[1,2],\"m\":\"deep\",\"n\":[null,null,null]}");
}

/* Custom resources may hold such values, and an object is made around them. */
static void a_value_may_be_as_deep_as_one_that_is_read(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *deep = NULL;
    auto_buf struct buf text = { .max = 4096 }, expected = { .max = 4096 };

    for (int i = 0; i < 2 * JSON_MAX_DEPTH; i++)
        buf_add_char(&text, i < JSON_MAX_DEPTH ? '[' : ']');
    assert_int_equal(json_parse(buf_str(&text), 4096, &deep, NULL), 0);
    buf_printf(&expected, "{\"spec\":{\"x\":%s}}", buf_text(&text));
    buf_clear(&text);
    json_mut_write(json_format(build, "{'spec':{'x':%j}}", json_root(deep)), &text);
    assert_string_equal(buf_text(&text), buf_text(&expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_put_in_escaped),
        cmocka_unit_test(a_value_may_be_as_deep_as_one_that_is_read),
    };

    return cmocka_run_group_tests_name("json_format", tests, NULL, NULL);
}
