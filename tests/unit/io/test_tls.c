/* test_tls.c - which PEM material is taken, from memory and from files. */
#include "base/buf.h"
#include "certs.h"
#include "io/tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

enum { DAY = 86400 };

static struct cert ca, leaf, other;

static int make_certs(void **state)
{
    cert_make(&ca, "CA", NULL, NULL, DAY);
    cert_make(&leaf, "leaf", "DNS:a.test", &ca, DAY);
    cert_make(&other, "other", "DNS:a.test", &ca, DAY);
    return 0;
}

static int free_certs(void **state)
{
    cert_free(&ca);
    cert_free(&leaf);
    cert_free(&other);
    return 0;
}

static int load(struct tls_source source, struct err *err)
{
    struct tls_material *material = NULL;
    int result = tls_material_new(&source, &material, err);

    assert_true((result == 0) == (material != NULL));
    tls_material_unref(material);
    return result;
}

static void material_may_be_nothing_at_all(void **state)
{
    struct tls_material *material;

    assert_int_equal(tls_material_new(&(struct tls_source){ .ca_file = NULL }, &material, NULL), 0);
    assert_int_equal(tls_material_ca(material).len, 0);
    assert_int_equal(tls_material_cert(material).len, 0);
    assert_int_equal(tls_material_key(material).len, 0);
    tls_material_unref(material);
    tls_material_unref(NULL);
}

static void material_lives_until_its_last_user_lets_go(void **state)
{
    struct tls_source source = { .ca = str_of(ca.cert_pem) };
    struct tls_material *material;

    assert_int_equal(tls_material_new(&source, &material, NULL), 0);
    tls_material_ref(material);
    tls_material_unref(material);
    assert_true(str_eq(tls_material_ca(material), source.ca));
    tls_material_unref(material);
}

static void a_key_must_belong_to_its_certificate(void **state)
{
    struct str cert = str_of(leaf.cert_pem), key = str_of(leaf.key_pem);

    assert_int_equal(load((struct tls_source){ .cert = cert, .key = key }, NULL), 0);
    assert_int_equal(load((struct tls_source){ .cert = cert, .key = str_of(other.key_pem) }, NULL),
                     -ERR_INVALID);
    assert_int_equal(load((struct tls_source){ .cert = cert }, NULL), -ERR_INVALID);
    assert_int_equal(load((struct tls_source){ .key = key }, NULL), -ERR_INVALID);
    assert_int_equal(load((struct tls_source){ .cert = key, .key = key }, NULL), -ERR_INVALID);
}

static void a_chain_is_taken_up_to_its_bound(void **state)
{
    auto_buf struct buf chain;

    buf_init(&chain, 20 * CERT_PEM_MAX);
    buf_add_text(&chain, leaf.cert_pem);
    for (int i = 0; i < 15; i++)
        buf_add_text(&chain, ca.cert_pem);

    struct tls_source source = { .cert = buf_str(&chain), .key = str_of(leaf.key_pem) };

    assert_int_equal(load(source, NULL), 0);
    buf_add_text(&chain, ca.cert_pem);
    source.cert = buf_str(&chain);
    assert_int_equal(load(source, NULL), -ERR_TOO_BIG);
}

static void an_encrypted_key_is_refused_without_asking(void **state)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char text[CERT_PEM_MAX];

    assert_true(PEM_write_bio_PrivateKey(bio, leaf.key, EVP_aes_128_cbc(),
                                         (const unsigned char *)"pass", 4, NULL, NULL));

    int length = BIO_read(bio, text, sizeof(text) - 1);

    BIO_free(bio);
    assert_int_equal(
        load((struct tls_source){ .cert = str_of(leaf.cert_pem), .key = { text, (size_t)length } },
             NULL),
        -ERR_INVALID);
}

static void errors_name_the_piece_and_show_nothing_of_it(void **state)
{
    struct err err = { 0 };

    assert_int_equal(
        load((struct tls_source){ .cert = str_of(leaf.cert_pem), .key = STR("topsecret") }, &err),
        -ERR_INVALID);
    assert_memory_equal(err.text, "private key: ", 13);
    assert_null(strstr(err.text, "topsecret"));
    assert_int_equal(load((struct tls_source){ .ca = STR("x") }, &err), -ERR_INVALID);
    assert_memory_equal(err.text, "CA certificate: ", 16);
}

static void a_server_needs_a_pair(void **state)
{
    struct tls_source pair = { .cert = str_of(leaf.cert_pem), .key = str_of(leaf.key_pem) };
    struct tls_source none = { .ca = str_of(ca.cert_pem) };
    struct tls_material *material;
    SSL_CTX *context = NULL;

    assert_int_equal(tls_material_new(&none, &material, NULL), 0);
    assert_true(tls_server_context(material, &context, NULL) < 0);
    assert_null(context);
    tls_material_unref(material);
    assert_int_equal(tls_material_new(&pair, &material, NULL), 0);
    assert_int_equal(tls_server_context(material, &context, NULL), 0);
    tls_material_unref(material);
    SSL_CTX_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(material_may_be_nothing_at_all),
        cmocka_unit_test(material_lives_until_its_last_user_lets_go),
        cmocka_unit_test(a_key_must_belong_to_its_certificate),
        cmocka_unit_test(a_chain_is_taken_up_to_its_bound),
        cmocka_unit_test(an_encrypted_key_is_refused_without_asking),
        cmocka_unit_test(errors_name_the_piece_and_show_nothing_of_it),
        cmocka_unit_test(a_server_needs_a_pair),
    };

    return cmocka_run_group_tests_name("io/tls", tests, make_certs, free_certs);
}
