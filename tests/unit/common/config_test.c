/* SPDX-License-Identifier: Apache-2.0
 * Loading a good configuration: defaults, each source, which wins, where a value came from, peers and policies, diff
 * and reload. */
#include "common/config.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/unit/common/config_fixture.h"

#define KEY_A "\"public_key\": \"0000000000000000000000000000000000000001\""
#define KEY_B "\"public_key\": \"0000000000000000000000000000000000000002\""
#define KEY_C "\"public_key\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""

static struct fixture fx;

static bool origin_is(enum tn_config_key key, const char *suffix)
{
	char text[300];
	size_t have, want = strlen(suffix);

	tn_config_origin_text(tn_config_origin(fx.cfg, key), text, sizeof text);
	have = strlen(text);
	if (have >= want && strcmp(text + have - want, suffix) == 0)
		return true;
	fprintf(stderr, "origin of %s is %s, not ...%s\n", tn_config_key_path(key), text, suffix);
	return false;
}

static void built_in_defaults(void)
{
	fx_open(&fx);
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_u64(fx.cfg, TN_CFG_POLL_SPIN_US), 50);
	CU_ASSERT_EQUAL(tn_config_ns(fx.cfg, TN_CFG_POLL_SPIN_US), 50000);
	CU_ASSERT_EQUAL(tn_config_ns(fx.cfg, TN_CFG_DEADLINE_DEFAULT_MS), UINT64_C(30000000000));
	CU_ASSERT_EQUAL(tn_config_u64(fx.cfg, TN_CFG_LIMITS_MAX_REQUEST_BYTES), UINT64_C(16) << 30);
	CU_ASSERT_EQUAL(tn_config_enum(fx.cfg, TN_CFG_POLL_MODE), TN_POLL_MODE_ADAPTIVE);
	CU_ASSERT_STRING_EQUAL(tn_config_str(fx.cfg, TN_CFG_POLL_MODE), "adaptive");
	CU_ASSERT_EQUAL(tn_config_enum(fx.cfg, TN_CFG_LOG_LEVEL), TN_LOG_INFO);
	CU_ASSERT_TRUE(tn_config_bool(fx.cfg, TN_CFG_ADMISSION_MERGE));
	CU_ASSERT_FALSE(tn_config_bool(fx.cfg, TN_CFG_CONTROL_INSECURE));
	CU_ASSERT_EQUAL(tn_config_list_cnt(fx.cfg, TN_CFG_WORKERS_CPUS), 0);
	CU_ASSERT_EQUAL(tn_config_peer_cnt(fx.cfg), 0);
	CU_ASSERT_EQUAL(tn_config_policy_cnt(fx.cfg), 0);
	CU_ASSERT_EQUAL(tn_config_generation(fx.cfg), 1);
	CU_ASSERT_PTR_NULL(tn_config_path(fx.cfg));
	CU_ASSERT_TRUE(origin_is(TN_CFG_POLL_SPIN_US, "default"));
	fx_close(&fx);
}

static void resolved_defaults(void)
{
	fx_open(&fx);
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_TRUE(tn_name_valid(tn_config_str(fx.cfg, TN_CFG_HOST_NAME)));
	CU_ASSERT_EQUAL(tn_config_str(fx.cfg, TN_CFG_RUNTIME_DIR)[0], '/');
	CU_ASSERT_STRING_EQUAL(tn_config_str(fx.cfg, TN_CFG_CONTROL_ADVERTISE), "tcp://127.0.0.1:9816");
	CU_ASSERT_EQUAL_FATAL(tn_config_list_cnt(fx.cfg, TN_CFG_TCP_ADVERTISE_ADDRESSES), 1);
	CU_ASSERT_STRING_EQUAL(tn_config_list_str(fx.cfg, TN_CFG_TCP_ADVERTISE_ADDRESSES, 0), "127.0.0.1");
	fx_set(&fx, "state_dir=/s");
	fx_set(&fx, "control/bind=tcp://[::1]:7");
	fx_set(&fx, "transports/tcp/bind_address=192.0.2.7");
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_STRING_EQUAL(tn_config_str(fx.cfg, TN_CFG_CONTROL_KEY_FILE), "/s/curve.key");
	CU_ASSERT_STRING_EQUAL(tn_config_str(fx.cfg, TN_CFG_CONTROL_ADVERTISE), "tcp://[::1]:7");
	CU_ASSERT_STRING_EQUAL(tn_config_list_str(fx.cfg, TN_CFG_TCP_ADVERTISE_ADDRESSES, 0), "192.0.2.7");
	CU_ASSERT_TRUE(origin_is(TN_CFG_CONTROL_KEY_FILE, "default"));
	fx_set(&fx, "control/bind=tcp://127.0.0.1:0"); /* the port is known only after the bind */
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_STRING_EQUAL(tn_config_str(fx.cfg, TN_CFG_CONTROL_ADVERTISE), "");
	fx_close(&fx);
}

static void every_notation(void)
{
	fx_open(&fx);
	fx_write(&fx, "tent.json",
		 "{ \"admission\": { \"window_bytes\": \"1GB\", \"peer_window_bytes\": 33554432 },\n"
		 "  \"workers\": { \"count\": 2, \"cpus\": [3, 1] },\n"
		 "  \"observability\": { \"required_transports\": [\"tcp\", \"shm\"] } }\n");
	fx_env(&fx, "TENT_ADMISSION_QUANTUM_BYTES=64KiB");
	fx_env(&fx, "TENT_METRICS_RECORDING=false");
	fx_env(&fx, "TENT_TRANSPORTS_TCP_ADVERTISE_ADDRESSES=192.0.2.1, 2001:db8::1");
	fx_set(&fx, "poll/mode=busy");
	fx_set(&fx, "retry/max_attempts=7");
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_u64(fx.cfg, TN_CFG_ADMISSION_WINDOW_BYTES), UINT64_C(1) << 30);
	CU_ASSERT_EQUAL(tn_config_u64(fx.cfg, TN_CFG_ADMISSION_PEER_WINDOW_BYTES), 33554432);
	CU_ASSERT_EQUAL(tn_config_u64(fx.cfg, TN_CFG_ADMISSION_QUANTUM_BYTES), 65536);
	CU_ASSERT_EQUAL_FATAL(tn_config_list_cnt(fx.cfg, TN_CFG_WORKERS_CPUS), 2);
	CU_ASSERT_EQUAL(tn_config_list_u64(fx.cfg, TN_CFG_WORKERS_CPUS, 0), 3);
	CU_ASSERT_EQUAL(tn_config_list_u64(fx.cfg, TN_CFG_WORKERS_CPUS, 1), 1);
	CU_ASSERT_STRING_EQUAL(tn_config_list_str(fx.cfg, TN_CFG_OBS_REQUIRED_TRANSPORTS, 1), "shm");
	CU_ASSERT_FALSE(tn_config_bool(fx.cfg, TN_CFG_METRICS_RECORDING));
	CU_ASSERT_EQUAL_FATAL(tn_config_list_cnt(fx.cfg, TN_CFG_TCP_ADVERTISE_ADDRESSES), 2);
	CU_ASSERT_STRING_EQUAL(tn_config_list_str(fx.cfg, TN_CFG_TCP_ADVERTISE_ADDRESSES, 1), "2001:db8::1");
	CU_ASSERT_EQUAL(tn_config_enum(fx.cfg, TN_CFG_POLL_MODE), TN_POLL_MODE_BUSY);
	CU_ASSERT_EQUAL(tn_config_u64(fx.cfg, TN_CFG_RETRY_MAX_ATTEMPTS), 7);
	fx_close(&fx);
}

/* The same key in every source; take the strongest away one by one. */
static void precedence(void)
{
	fx_open(&fx);
	fx_write(&fx, "tent.json", "{\n\"poll\": {\n\"spin_us\": 1 } }");
	fx_write(&fx, "conf.d/10-a.json", "{ \"poll\": { \"spin_us\": 2 } }");
	fx_write(&fx, "conf.d/9-b.json", "{ \"poll\":\n { \"spin_us\": 3 } }");
	fx_write(&fx, "conf.d/.hidden.json", "not JSON");
	fx_write(&fx, "conf.d/backup.json~", "not JSON");
	fx_env(&fx, "TENT_POLL_SPIN_US=4");
	fx_set(&fx, "poll/spin_us=5");
	fx_set(&fx, "poll/spin_us=6");
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_u64(fx.cfg, TN_CFG_POLL_SPIN_US), 6);
	CU_ASSERT_TRUE(origin_is(TN_CFG_POLL_SPIN_US, "--set"));
	fx.set_cnt = 0;
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_u64(fx.cfg, TN_CFG_POLL_SPIN_US), 4);
	CU_ASSERT_TRUE(origin_is(TN_CFG_POLL_SPIN_US, "env TENT_POLL_SPIN_US"));
	fx.env[0] = NULL;
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_u64(fx.cfg, TN_CFG_POLL_SPIN_US), 3);
	CU_ASSERT_TRUE(origin_is(TN_CFG_POLL_SPIN_US, "/conf.d/9-b.json:2"));
	fx_write(&fx, "conf.d/9-b.json", "{}");
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_u64(fx.cfg, TN_CFG_POLL_SPIN_US), 2);
	fx_write(&fx, "conf.d/10-a.json", "{}");
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_u64(fx.cfg, TN_CFG_POLL_SPIN_US), 1);
	CU_ASSERT_TRUE(origin_is(TN_CFG_POLL_SPIN_US, "/tent.json:3"));
	CU_ASSERT_STRING_EQUAL(tn_config_path(fx.cfg), fx.path);
	fx_close(&fx);
}

static void which_file(void)
{
	char by_env[160], by_flag[160];

	fx_open(&fx);
	snprintf(by_env, sizeof by_env, "TENT_CONFIG=%s/env.json", fx.dir);
	snprintf(by_flag, sizeof by_flag, "%s/flag.json", fx.dir);
	fx_write(&fx, "tent.json", "{ \"poll\": { \"spin_us\": 1 } }");
	fx_write(&fx, "env.json", "{ \"poll\": { \"spin_us\": 2 } }");
	fx_write(&fx, "flag.json", "{ \"poll\": { \"spin_us\": 3 } }");
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_u64(fx.cfg, TN_CFG_POLL_SPIN_US), 1);
	fx_env(&fx, by_env);
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_u64(fx.cfg, TN_CFG_POLL_SPIN_US), 2);
	fx.opts.path = by_flag;
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_u64(fx.cfg, TN_CFG_POLL_SPIN_US), 3);
	CU_ASSERT_STRING_EQUAL(tn_config_path(fx.cfg), by_flag);
	fx_close(&fx);
}

static void other_environment_is_left_alone(void)
{
	fx_open(&fx);
	fx_env(&fx, "TENT_HOOK=accept=fail");
	fx_env(&fx, "TENT_TEST_ANYTHING=1");
	fx_env(&fx, "TENTACLE=8");
	fx_env(&fx, "PATH=/bin");
	CU_ASSERT_TRUE(fx_good(&fx));
	fx_close(&fx);
}

static void peers_are_merged_by_name(void)
{
	const struct tn_config_peer *p;

	fx_open(&fx);
	fx_write(&fx, "tent.json",
		 "{ \"peers\": [\n"
		 " { \"name\": \"a\", \"address\": \"tcp://192.0.2.1:1\", " KEY_A " },\n"
		 " { \"name\": \"b\", \"address\": \"tcp://192.0.2.2:1\", " KEY_B " } ] }");
	fx_write(&fx, "conf.d/a.json",
		 "{ \"peers\": [ { \"name\": \"a\", \"address\": \"tcp://[2001:db8::9]:9\", " KEY_C ",\n"
		 " \"data_addresses\": [\"192.0.2.8\", \"192.0.2.9\"] } ] }");
	fx_write(&fx, "conf.d/c.json",
		 "{ \"peers\": [ { \"name\": \"c\", \"address\": \"tcp://192.0.2.3:1\", " KEY_A " } ] }");
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL_FATAL(tn_config_peer_cnt(fx.cfg), 3);
	p = tn_config_peer(fx.cfg, 0);
	CU_ASSERT_STRING_EQUAL(p->name, "a");
	CU_ASSERT_STRING_EQUAL(p->address, "tcp://[2001:db8::9]:9");
	CU_ASSERT_EQUAL(p->id.b[0], 0xaa);
	CU_ASSERT_EQUAL_FATAL(p->data_address_cnt, 2);
	CU_ASSERT_STRING_EQUAL(p->data_addresses[1], "192.0.2.9");
	CU_ASSERT_PTR_EQUAL(tn_config_peer_by_id(fx.cfg, &p->id), p);
	CU_ASSERT_STRING_EQUAL(tn_config_peer(fx.cfg, 2)->name, "c");
	CU_ASSERT_EQUAL(tn_config_peer_by_name(fx.cfg, "b"), tn_config_peer(fx.cfg, 1));
	CU_ASSERT_EQUAL(tn_config_peer_by_name(fx.cfg, "b")->id.b[31], 2);
	CU_ASSERT_PTR_NULL(tn_config_peer_by_name(fx.cfg, "d"));
	CU_ASSERT_PTR_NULL(tn_config_peer_by_id(fx.cfg, &(struct tn_peer_id){ { 0 } }));
	fx_env(&fx, "TENT_PEERS=[]");
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_peer_cnt(fx.cfg), 0);
	fx_close(&fx);
}

static void policies_are_structs(void)
{
	const struct tn_config_policy *p;

	fx_open(&fx);
	fx_write(&fx, "tent.json",
		 "{ \"policies\": [\n"
		 " { \"name\": \"big\", \"transports\": [\"rdma\", \"tcp\"], \"min_bytes\": \"1MiB\" },\n"
		 " { \"name\": \"urgent\", \"transports\": [\"shm\", \"hp_tcp\"], \"priority\": \"high\","
		 "   \"intent\": \"staging\", \"max_bytes\": 10 } ] }");
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL_FATAL(tn_config_policy_cnt(fx.cfg), 2);
	p = tn_config_policy(fx.cfg, 0);
	CU_ASSERT_STRING_EQUAL(p->name, "big");
	CU_ASSERT_EQUAL_FATAL(p->transport_cnt, 2);
	CU_ASSERT_EQUAL(p->transports[0], TN_TRANSPORT_RDMA);
	CU_ASSERT_EQUAL(p->transports[1], TN_TRANSPORT_TCP);
	CU_ASSERT_EQUAL(p->min_bytes, 1 << 20);
	CU_ASSERT_EQUAL(p->priority, TN_CONFIG_ANY);
	CU_ASSERT_EQUAL(p->intent, TN_CONFIG_ANY);
	CU_ASSERT_EQUAL(p->id, TN_CONFIG_POLICY_ID_FIRST);
	p = tn_config_policy(fx.cfg, 1);
	CU_ASSERT_EQUAL(p->id, TN_CONFIG_POLICY_ID_FIRST + 1);
	CU_ASSERT_EQUAL(p->transports[0], TN_TRANSPORT_SHM);
	CU_ASSERT_EQUAL(p->transports[1], TN_TRANSPORT_HP_TCP);
	CU_ASSERT_EQUAL(p->priority, TN_PRIORITY_HIGH);
	CU_ASSERT_EQUAL(p->intent, TN_INTENT_STAGING);
	CU_ASSERT_EQUAL(p->min_bytes, 0);
	CU_ASSERT_EQUAL(p->max_bytes, 10);
	fx_close(&fx);
}

static unsigned id_of(const char *name)
{
	const struct tn_config_policy *p = tn_config_policy_by_name(fx.cfg, name);

	return p != NULL ? p->id : 0;
}

static void reload_policies(const char *policies)
{
	struct tn_config_change changes[TN_CFG_KEY_CNT];
	struct tn_config *next;
	unsigned cnt;

	fx_write(&fx, "tent.json", policies);
	CU_ASSERT_EQUAL_FATAL(tn_config_reload(fx.cfg, &fx.opts, &next, &fx.errors, changes, &cnt), TN_OK);
	tn_config_free(fx.cfg);
	fx.cfg = next;
}

/* A number means one name for ever, wherever that stands in the list, and also when it was away for a while. */
static void policies_keep_numbers(void)
{
#define P(name) "{ \"name\": \"" name "\", \"transports\": [\"tcp\"] }"
	const unsigned first = TN_CONFIG_POLICY_ID_FIRST;

	fx_open(&fx);
	fx_write(&fx, "tent.json", "{ \"policies\": [" P("a") "," P("b") "] }");
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_policy_id_end(fx.cfg), first + 2);
	reload_policies("{ \"policies\": [" P("c") "," P("b") "] }");
	CU_ASSERT_TRUE(id_of("c") == first + 2 && id_of("b") == first + 1 && id_of("a") == 0);
	CU_ASSERT_PTR_NULL(tn_config_policy_by_id(fx.cfg, first)); /* not c, though that stands where a stood */
	CU_ASSERT_STRING_EQUAL(tn_config_policy_by_id(fx.cfg, first + 2)->name, "c");
	reload_policies("{}");
	CU_ASSERT_EQUAL(tn_config_policy_cnt(fx.cfg), 0);
	CU_ASSERT_EQUAL(tn_config_policy_id_end(fx.cfg), first + 3);
	reload_policies("{ \"policies\": [" P("d") "," P("a") "," P("b") "] }");
	CU_ASSERT_TRUE(id_of("d") == first + 3 && id_of("a") == first && id_of("b") == first + 1);
	fx_close(&fx);
#undef P
}

static void worker_count(void)
{
	fx_open(&fx);
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_worker_cnt(fx.cfg, 1), 1);
	CU_ASSERT_EQUAL(tn_config_worker_cnt(fx.cfg, 2), 1);
	CU_ASSERT_EQUAL(tn_config_worker_cnt(fx.cfg, 5), 4);
	CU_ASSERT_EQUAL(tn_config_worker_cnt(fx.cfg, 64), 8);
	fx_set(&fx, "workers/cpus=0,2,4");
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_worker_cnt(fx.cfg, 64), 3);
	fx_set(&fx, "workers/cpus=");
	fx_set(&fx, "workers/count=12");
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_worker_cnt(fx.cfg, 2), 12);
	fx_close(&fx);
}

static void diff_and_reload(void)
{
	struct tn_config_change changes[TN_CFG_KEY_CNT];
	struct tn_config *next = NULL;
	unsigned cnt = 99;

	fx_open(&fx);
	fx_write(&fx, "tent.json",
		 "{ \"peers\": [ { \"name\": \"a\", \"address\": \"tcp://192.0.2.1:1\", " KEY_A " } ] }");
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_diff(fx.cfg, fx.cfg, changes), 0);
	fx_write(&fx, "tent.json", "{ \"log\": { \"level\": \"debug\" }, \"poll\": { \"spin_us\": 9 } }");
	CU_ASSERT_EQUAL_FATAL(tn_config_reload(fx.cfg, &fx.opts, &next, &fx.errors, changes, &cnt), TN_OK);
	CU_ASSERT_EQUAL_FATAL(cnt, 3);
	CU_ASSERT_EQUAL(changes[0].key, TN_CFG_POLL_SPIN_US);
	CU_ASSERT_FALSE(changes[0].hot);
	CU_ASSERT_EQUAL(changes[1].key, TN_CFG_PEERS);
	CU_ASSERT_FALSE(changes[1].hot);
	CU_ASSERT_EQUAL(changes[2].key, TN_CFG_LOG_LEVEL);
	CU_ASSERT_TRUE(changes[2].hot);
	CU_ASSERT_EQUAL(tn_config_generation(next), 2);
	CU_ASSERT_EQUAL(tn_config_enum(next, TN_CFG_LOG_LEVEL), TN_LOG_DEBUG);
	CU_ASSERT_EQUAL(tn_config_u64(next, TN_CFG_POLL_SPIN_US), 50);
	/* what was carried over outlives the config it came from */
	tn_config_free(fx.cfg);
	fx.cfg = next;
	CU_ASSERT_EQUAL_FATAL(tn_config_peer_cnt(fx.cfg), 1);
	CU_ASSERT_STRING_EQUAL(tn_config_peer(fx.cfg, 0)->name, "a");
	CU_ASSERT_TRUE(origin_is(TN_CFG_PEERS, "/tent.json:1"));
	fx_write(&fx, "tent.json", "{ \"log\": 5 }");
	next = NULL;
	CU_ASSERT_EQUAL(tn_config_reload(fx.cfg, &fx.opts, &next, &fx.errors, changes, &cnt), TN_CONFIG);
	CU_ASSERT_PTR_NULL(next);
	fx_close(&fx);
}

static void hot_keys(void)
{
	CU_ASSERT_TRUE(tn_config_key_is_hot(TN_CFG_LOG_LEVEL));
	CU_ASSERT_TRUE(tn_config_key_is_hot(TN_CFG_RETRY_MAX_ATTEMPTS));
	CU_ASSERT_TRUE(tn_config_key_is_hot(TN_CFG_METRICS_RECORDING));
	CU_ASSERT_TRUE(tn_config_key_is_hot(TN_CFG_OBS_STUCK_REQUEST_THRESHOLD_US));
	CU_ASSERT_FALSE(tn_config_key_is_hot(TN_CFG_TCP_PORT));
	CU_ASSERT_FALSE(tn_config_key_is_hot(TN_CFG_PEERS));
}

/* Runs read in a child; true when it aborts. */
static bool aborts(void (*read)(const struct tn_config *))
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		fclose(stderr);
		read(fx.cfg);
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void read_str_as_u64(const struct tn_config *cfg)
{
	(void)tn_config_u64(cfg, TN_CFG_HOST_NAME);
}
static void read_u64_as_bool(const struct tn_config *cfg)
{
	(void)tn_config_bool(cfg, TN_CFG_TCP_PORT);
}
static void read_bytes_as_ns(const struct tn_config *cfg)
{
	(void)tn_config_ns(cfg, TN_CFG_TCP_FRAME_BYTES);
}
static void read_past_list(const struct tn_config *cfg)
{
	(void)tn_config_list_u64(cfg, TN_CFG_WORKERS_CPUS, 0);
}
static void read_past_keys(const struct tn_config *cfg)
{
	(void)tn_config_str(cfg, TN_CFG_KEY_CNT);
}
static void read_right(const struct tn_config *cfg)
{
	(void)tn_config_u64(cfg, TN_CFG_TCP_PORT);
}

static void wrong_type_is_a_bug(void)
{
	fx_open(&fx);
	CU_ASSERT_FATAL(fx_good(&fx));
	CU_ASSERT_TRUE(aborts(read_str_as_u64));
	CU_ASSERT_TRUE(aborts(read_u64_as_bool));
	CU_ASSERT_TRUE(aborts(read_bytes_as_ns));
	CU_ASSERT_TRUE(aborts(read_past_list));
	CU_ASSERT_TRUE(aborts(read_past_keys));
	CU_ASSERT_FALSE(aborts(read_right));
	fx_close(&fx);
}

static bool loads(const char *path)
{
	fx_open(&fx);
	fx.opts.path = path;
	bool good = fx_good(&fx);

	fx_close(&fx);
	return good;
}

static void shipped_files_load(void)
{
	CU_ASSERT_TRUE(loads(TENT_SOURCE_DIR "/deploy/config/tent.json"));
	fx_open(&fx);
	fx.opts.path = TENT_SOURCE_DIR "/deploy/config/two-hosts.json";
	CU_ASSERT_EQUAL(fx_load(&fx), TN_CONFIG); /* whom to let in, only its user knows */
	CU_ASSERT_EQUAL(fx.errors.cnt, 1);
	CU_ASSERT_TRUE(fx_has_error(&fx, "/two-hosts.json", 9, "peers/0/public_key", "tentctl keygen"));
	fx.opts.without_peers = true;
	CU_ASSERT_TRUE(fx_good(&fx));
	CU_ASSERT_EQUAL(tn_config_peer_cnt(fx.cfg), 0);
	fx_close(&fx);
}

/* Number of warnings of a file; all are in fx.errors. */
static unsigned warned(const char *text)
{
	fx_write(&fx, "tent.json", text);
	tn_config_free(fx.cfg);
	fx.cfg = NULL;
	CU_ASSERT_FATAL(fx_good(&fx));
	tn_config_warnings(fx.cfg, &fx.errors);
	return fx.errors.cnt;
}

#define PEER(name, address) \
	"\"peers\":[{\"name\":\"" name "\",\"address\":\"tcp://" address ":9816\",\"public_key\":\"R?!a9f!aTq-j!MnvUo@^0J}YGIej^K)NhiT8CBn*\"}]"

static void contradictions_are_warned_of(void)
{
	fx_open(&fx);
	CU_ASSERT_EQUAL(warned("{}"), 0);
	CU_ASSERT_EQUAL(warned("{" PEER("b", "127.0.0.1") "}"), 1); /* our own address: control/bind's default */
	CU_ASSERT_TRUE(fx_has_error(&fx, fx.path, 1, "peers", "the address of this host"));
	CU_ASSERT_EQUAL(warned("{" PEER("b", "127.0.0.2") "}"), 0);
	CU_ASSERT_EQUAL(warned("{\n\"control\":{\"bind\":\"tcp://192.0.2.1:9816\"}}"), 1);
	CU_ASSERT_TRUE(fx_has_error(&fx, "", 0, "transports/tcp/bind_address", "cannot arrive"));
	CU_ASSERT_EQUAL(warned("{\"control\":{\"bind\":\"tcp://192.0.2.1:9816\"},\"transports\":{\"tcp\":{\"enable\":false}}}"), 0);
	CU_ASSERT_EQUAL(warned("{" PEER("b", "192.0.2.2") "}"), 2); /* shipped defaults and a peer elsewhere: both doors */
	CU_ASSERT_TRUE(fx_has_error(&fx, "", 0, "control/bind", "peer b is on another host"));
	CU_ASSERT_EQUAL(warned("{\"control\":{\"bind\":\"tcp://192.0.2.1:9816\"},\"transports\":{\"tcp\":{\"bind_address\":"
			       "\"0.0.0.0\",\"advertise_addresses\":[\"127.0.0.1\"]}}}"), 1);
	CU_ASSERT_EQUAL(warned("{\"control\":{\"bind\":\"tcp://0.0.0.0:9816\",\"advertise\":\"tcp://127.0.0.1:9816\"},"
			       "\"transports\":{\"tcp\":{\"bind_address\":\"192.0.2.1\"}}}"), 1);
	CU_ASSERT_EQUAL(warned("{\"host\":{\"name\":\"b\"}," PEER("b", "127.0.0.2") "}"), 1);
	CU_ASSERT_TRUE(fx_has_error(&fx, fx.path, 1, "peers", "the name of this host"));
	fx_close(&fx);
}

static void values_as_text(void)
{
	char text[64];
	fx_open(&fx);
	fx_set(&fx, "log/level=warn");
	fx_set(&fx, "admission/quantum_bytes=2097152");
	CU_ASSERT_FATAL(fx_good(&fx));
	tn_config_value_text(fx.cfg, TN_CFG_LOG_LEVEL, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "\"warn\"");
	tn_config_value_text(fx.cfg, TN_CFG_ADMISSION_QUANTUM_BYTES, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "\"2MiB\"");
	tn_config_value_text(fx.cfg, TN_CFG_RETRY_MAX_ATTEMPTS, text, 2); /* cut, not overrun */
	CU_ASSERT_STRING_EQUAL(text, "8");
	fx_close(&fx);
}

TN_TEST_MAIN("common_config", { "built-in defaults", built_in_defaults }, { "resolved defaults", resolved_defaults },
	     { "every notation of a value", every_notation }, { "precedence and origin", precedence },
	     { "which file is read", which_file }, { "other environment", other_environment_is_left_alone },
	     { "peers merged by name", peers_are_merged_by_name }, { "policies", policies_are_structs },
	     { "policies keep their numbers", policies_keep_numbers },
	     { "worker count", worker_count }, { "diff and reload", diff_and_reload }, { "hot keys", hot_keys },
	     { "a wrong type asserts", wrong_type_is_a_bug }, { "shipped files load", shipped_files_load },
	     { "contradictions are warned of", contradictions_are_warned_of }, { "values as text", values_as_text })
