/* examples/gemv.c - y = x^T A through the C API, in C99
 *
 * usage: gemv_c [DEVICE]     DEVICE: auto (default), emulator, cuda:0, ...
 *
 * The steps of an engine in C: open a device, upload weights, load the kernels of all shapes before
 * the first request, plan the launch, repeat it, read the result.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ptxgen/ptxgen.h>

enum { K = 300, N = 500, TOKENS = 4 };

/* Everything that is freed at the end. */
struct engine {
  ptxgen_device* device;
  ptxgen_stream* stream;
  ptxgen_buffer* weights;
  ptxgen_buffer* x;
  ptxgen_buffer* y;
  ptxgen_plan* plan;
  ptxgen_program* program;
  float* host_weights;
};

/* Prints the error; `handle` is the first handle of the call that failed, or NULL. */
static int failed(const char* doing, const void* handle) {
  char text[4096];
  ptxgen_last_error_text(handle, text, sizeof text);
  fprintf(stderr, "%s: %s\n", doing, text);
  return 1;
}

static void log_line(void* user, ptxgen_log_level level, const char* message, size_t bytes) {
  (void)user;
  fprintf(stderr, "[ptxgen %d] %.*s\n", (int)level, (int)bytes, message);
}

static int open_engine(struct engine* engine, const char* name) {
  ptxgen_device_info info;
  if (ptxgen_set_log(PTXGEN_LOG_WARN, log_line, NULL) != PTXGEN_OK) return failed("log", NULL);
  if (ptxgen_device_open(name, NULL, &engine->device) != PTXGEN_OK) return failed("open", NULL);
  memset(&info, 0, sizeof info);
  info.struct_bytes = sizeof info;
  if (ptxgen_device_get_info(engine->device, &info) != PTXGEN_OK) {
    return failed("info", engine->device);
  }
  printf("ptxgen %s on %s (%s)\n", ptxgen_version_string(), info.name, info.target);
  if (ptxgen_stream_create(engine->device, PTXGEN_STREAM_NON_BLOCKING, 0, &engine->stream) !=
      PTXGEN_OK) {
    return failed("stream", engine->device);
  }
  return 0;
}

static int load_weights(struct engine* engine) {
  const uint64_t bytes = sizeof(float) * K * N;
  int i;
  engine->host_weights = malloc(bytes);
  if (engine->host_weights == NULL) return 1;
  for (i = 0; i < K * N; ++i) engine->host_weights[i] = (float)(i % 13 - 6) / 8;
  if (ptxgen_buffer_create(engine->device, bytes, &engine->weights) != PTXGEN_OK ||
      ptxgen_buffer_create(engine->device, sizeof(float) * K, &engine->x) != PTXGEN_OK ||
      ptxgen_buffer_create(engine->device, sizeof(float) * N, &engine->y) != PTXGEN_OK) {
    return failed("memory", engine->device);
  }
  if (ptxgen_buffer_write(engine->weights, 0, engine->host_weights, bytes, NULL) != PTXGEN_OK) {
    return failed("weights", engine->weights);
  }
  return 0;
}

/* After this no request waits for a compiler. */
static int make_ready(struct engine* engine) {
  const ptxgen_parameter shape[] = {{"k", K}, {"n", N}};
  ptxgen_kernel_request request;
  request.kernel = "gemv";
  request.parameters = shape;
  request.parameter_count = 2;
  if (ptxgen_prepare(engine->device, &request, 1, NULL, NULL) != PTXGEN_OK) {
    return failed("prepare", engine->device);
  }
  if (ptxgen_plan_gemv(engine->device, ptxgen_buffer_span(engine->y),
                       ptxgen_buffer_span(engine->weights), ptxgen_buffer_span(engine->x), K, N,
                       engine->stream, &engine->plan) != PTXGEN_OK) {
    return failed("plan", engine->device);
  }
  return 0;
}

static int run_token(struct engine* engine, int token) {
  float x[K];
  float y[N];
  int wrong = 0;
  int i;
  int j;
  for (i = 0; i < K; ++i) x[i] = (float)((i * 7 + token) % 5 - 2);
  if (ptxgen_buffer_write(engine->x, 0, x, sizeof x, engine->stream) != PTXGEN_OK) {
    return failed("write", engine->x);
  }
  if (ptxgen_plan_launch(engine->plan, NULL) != PTXGEN_OK) return failed("launch", engine->plan);
  if (ptxgen_buffer_read(engine->y, 0, y, sizeof y, engine->stream) != PTXGEN_OK) {
    return failed("read", engine->y);
  }
  /* A fault in the kernel is reported here. */
  if (ptxgen_stream_synchronize(engine->stream) != PTXGEN_OK) {
    return failed("run", engine->stream);
  }
  for (j = 0; j < N; ++j) {
    double sum = 0;
    for (i = 0; i < K; ++i) sum += (double)engine->host_weights[i * N + j] * x[i];
    if (fabs(sum - y[j]) > 1e-3) ++wrong;
  }
  printf("token %d: y[0] = %g, %d of %d wrong\n", token, y[0], wrong, N);
  return wrong != 0;
}

/* Prints the size of the kernel's PTX. */
static int show_ptx(struct engine* engine) {
  const ptxgen_parameter shape[] = {{"k", K}, {"n", N}};
  size_t bytes = 0;
  if (ptxgen_program_build(engine->device, NULL, "gemv_coalesced", shape, 2, &engine->program) !=
      PTXGEN_OK) {
    return failed("build", engine->device);
  }
  (void)ptxgen_program_ptx(engine->program, &bytes);
  printf("%s is %u bytes of PTX\n", ptxgen_program_entry(engine->program, 0), (unsigned)bytes);
  return 0;
}

/* Handles may be freed in any order. */
static void close_engine(struct engine* engine) {
  ptxgen_device_free(engine->device);
  ptxgen_program_free(engine->program);
  ptxgen_plan_free(engine->plan);
  ptxgen_buffer_free(engine->weights);
  ptxgen_buffer_free(engine->x);
  ptxgen_buffer_free(engine->y);
  ptxgen_stream_free(engine->stream);
  free(engine->host_weights);
}

int main(int count, char** arguments) {
  struct engine engine = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
  int token;
  int status = open_engine(&engine, count > 1 ? arguments[1] : NULL);
  if (status == 0) status = load_weights(&engine);
  if (status == 0) status = make_ready(&engine);
  for (token = 0; status == 0 && token < TOKENS; ++token) status = run_token(&engine, token);
  if (status == 0) status = show_ptx(&engine);
  close_engine(&engine);
  return status;
}
