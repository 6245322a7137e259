/* test_covers.c - a live object covers what we want of it, whatever the server filled in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/covers.h"
#include "parsed.h"

static const struct {
    const char *live, *wanted;
    bool covers;
} cases[] = {
    { "{'a':1,'b':2}", "{'a':1}", true },
    { "{'a':1}", "{'a':2}", false },
    { "{'a':1}", "{'a':1,'b':2}", false },
    { "{}", "{'a':{'b':'c'}}", false },
    /* lists: the same items in the same places, each with defaults of its own */
    { "[{'name':'x','protocol':'TCP'}]", "[{'name':'x'}]", true },
    { "[{'name':'x'},{'name':'y'}]", "[{'name':'x'}]", false },
    { "[{'name':'y'},{'name':'x'}]", "[{'name':'x'},{'name':'y'}]", false },
    { "'x'", "['x']", false },
    /* the server leaves zero values out */
    { "{}", "{'privileged':false,'grace':0,'args':[],'class':'','affinity':{},'x':null}", true },
    { "{}", "{'securityContext':{'privileged':false}}", true },
    { "{}", "{'securityContext':{'privileged':true}}", false },
    { "{'grace':30}", "{'grace':0}", false },
    { "{'enableServiceLinks':true}", "{'enableServiceLinks':false}", false },
    /* null means absent */
    { "{'data':{'a':'1'}}", "{'data':{'b':null}}", true },
    { "{'data':{'b':'1'}}", "{'data':{'b':null}}", false },
    /* quantities, and only where quantities are */
    { "{'limits':{'cpu':'1','memory':'1Gi'}}", "{'limits':{'cpu':'1000m','memory':'1024Mi'}}",
      true },
    { "{'requests':{'cpu':'2'}}", "{'requests':{'cpu':2}}", true },
    { "{'requests':{'cpu':'2'}}", "{'requests':{'cpu':'3'}}", false },
    { "{'requests':{'cpu':'500m'}}", "{'requests':{'cpu':0.5}}", true },
    { "{'requests':{'cpu':'0'}}", "{'requests':{'cpu':0.5}}", false },
    { "{'overhead':{'memory':'1Gi'}}", "{'overhead':{'memory':1073741824}}", true },
    { "{'divisor':'1'}", "{'divisor':1}", true },
    { "{'sizeLimit':'1Gi'}", "{'sizeLimit':'1024Mi'}", true },
    { "{'labels':{'x':'1'}}", "{'labels':{'x':'1000m'}}", false },
};

static void what_the_server_filled_in_is_no_difference(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_json_doc struct json_doc *live = parsed(cases[i].live);
        auto_json_doc struct json_doc *wanted = parsed(cases[i].wanted);

        if (json_covers(json_root(live), json_root(wanted)) != cases[i].covers)
            fail_msg("%s covers %s: wrong", cases[i].live, cases[i].wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_server_filled_in_is_no_difference),
    };

    return cmocka_run_group_tests_name("covers", tests, NULL, NULL);
}
