/* A libfdb_c without a database: enough to link against, and to fail in each of the ways that ARCHIPELAGO_FDB_STUB names.
 *
 *   old       speaks an API version that is too old
 *   network   refuses to set its network up
 *   silent    never answers
 *   failing   answers everything with an error
 *   (else)    refuses to open a database
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INVALID_OPERATION 2000
#define UNSUPPORTED_OPERATION 2108
#define NETWORK_NOT_SET_UP 2008

static volatile int stopped;

static int mode(const char *name) {
    const char *chosen = getenv("ARCHIPELAGO_FDB_STUB");
    return chosen && strcmp(chosen, name) == 0;
}

static void *thing(void) { return calloc(1, 16); }

const char *fdb_get_error(int code) {
    return code == UNSUPPORTED_OPERATION ? "Operation is not supported" : "The stub does nothing";
}
int fdb_error_predicate(int predicate, int code) { return 0; }
int fdb_get_max_api_version(void) { return mode("old") ? 510 : 730; }
int fdb_select_api_version_impl(int runtime, int header) { return 0; }
int fdb_network_set_option(int option, const uint8_t *value, int length) { return 0; }
int fdb_setup_network(void) { return mode("network") ? NETWORK_NOT_SET_UP : 0; }
int fdb_run_network(void) {
    while (!stopped) usleep(1000);
    fprintf(stderr, "the stub's network has ended\n");
    return 0;
}
int fdb_stop_network(void) { stopped = 1; return 0; }

int fdb_create_database(const char *path, void **database) {
    if (!mode("silent") && !mode("failing")) return UNSUPPORTED_OPERATION;
    *database = thing();
    return 0;
}
void fdb_database_destroy(void *database) { free(database); }
int fdb_database_set_option(void *database, int option, const uint8_t *value, int length) { return 0; }
int fdb_database_create_transaction(void *database, void **transaction) { *transaction = thing(); return 0; }
void *fdb_database_get_client_status(void *database) { return thing(); }
double fdb_database_get_main_thread_busyness(void *database) { return 0; }
int fdb_database_open_tenant(void *database, const uint8_t *name, int length, void **tenant) { return UNSUPPORTED_OPERATION; }
int fdb_tenant_create_transaction(void *tenant, void **transaction) { return UNSUPPORTED_OPERATION; }
void fdb_tenant_destroy(void *tenant) {}

void fdb_transaction_destroy(void *transaction) { free(transaction); }
void fdb_transaction_cancel(void *transaction) {}
void fdb_transaction_reset(void *transaction) {}
int fdb_transaction_set_option(void *transaction, int option, const uint8_t *value, int length) { return 0; }
void fdb_transaction_set_read_version(void *transaction, int64_t version) {}
void fdb_transaction_set(void *transaction, const uint8_t *key, int key_length, const uint8_t *value, int length) {}
void fdb_transaction_clear(void *transaction, const uint8_t *key, int length) {}
void fdb_transaction_clear_range(void *transaction, const uint8_t *begin, int begin_length, const uint8_t *end, int length) {}
void fdb_transaction_atomic_op(void *transaction, const uint8_t *key, int key_length, const uint8_t *value, int length, int op) {}
int fdb_transaction_add_conflict_range(void *transaction, const uint8_t *begin, int begin_length, const uint8_t *end, int length, int kind) { return 0; }
int fdb_transaction_get_committed_version(void *transaction, int64_t *version) { return INVALID_OPERATION; }

#define ANSWERS(name) void *name(void *transaction, ...) { return thing(); }
ANSWERS(fdb_transaction_get)
ANSWERS(fdb_transaction_get_addresses_for_key)
ANSWERS(fdb_transaction_get_approximate_size)
ANSWERS(fdb_transaction_get_estimated_range_size_bytes)
ANSWERS(fdb_transaction_get_key)
ANSWERS(fdb_transaction_get_mapped_range)
ANSWERS(fdb_transaction_get_range)
ANSWERS(fdb_transaction_get_range_split_points)
ANSWERS(fdb_transaction_get_read_version)
ANSWERS(fdb_transaction_get_versionstamp)
ANSWERS(fdb_transaction_watch)
ANSWERS(fdb_transaction_commit)
ANSWERS(fdb_transaction_on_error)

void fdb_future_destroy(void *future) { free(future); }
int fdb_future_is_ready(void *future) { return !mode("silent"); }
int fdb_future_set_callback(void *future, void *callback, void *parameter) { return 0; }
int fdb_future_get_error(void *future) { return INVALID_OPERATION; }

#define GIVES(name) int name(void *future, ...) { return INVALID_OPERATION; }
GIVES(fdb_future_get_int)
GIVES(fdb_future_get_int64)
GIVES(fdb_future_get_version)
GIVES(fdb_future_get_key)
GIVES(fdb_future_get_key_array)
GIVES(fdb_future_get_keyvalue_array)
GIVES(fdb_future_get_mappedkeyvalue_array)
GIVES(fdb_future_get_string_array)
GIVES(fdb_future_get_value)
