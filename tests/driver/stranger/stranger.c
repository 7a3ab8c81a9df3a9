// tests/driver/stranger/stranger.c - a Driver API program that knows nothing of ptxgen
//
// usage: stranger           all of it; the last line counts the checks
//        stranger FILE      loads FILE as a module; prints the result's number and the error log
#include <cuda.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks = 0;

static void report(CUresult result, CUresult expected, const char* call, int line) {
  ++checks;
  if (result == expected) return;
  const char* name = "?";
  cuGetErrorName(result, &name);
  printf("FAILED: line %d: %s gives %s (%d), expected %d\n", line, call, name, (int)result,
         (int)expected);
  exit(1);
}
static void require(int condition, const char* what, int line) {
  ++checks;
  if (condition) return;
  printf("FAILED: line %d: %s\n", line, what);
  exit(1);
}
#define GOOD(call) report((call), CUDA_SUCCESS, #call, __LINE__)
#define GIVES(expected, call) report((call), (expected), #call, __LINE__)
#define REQUIRE(condition) require((condition), #condition, __LINE__)

enum { kCount = 1000, kBytes = kCount * sizeof(float) };

static const char kPtx[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .global .align 4 .f32 scale = 0f40000000;\n"  // 2
    ".extern .shared .align 4 .b8 scratch[];\n"
    // y[i] = a * x[i] + y[i]
    ".visible .entry saxpy(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n)\n"
    "{\n"
    "  .reg .pred %p;\n"
    "  .reg .b32 %r<5>;\n"
    "  .reg .f32 %f<4>;\n"
    "  .reg .b64 %d<6>;\n"
    "  mov.u32 %r0, %ctaid.x;\n"
    "  mov.u32 %r1, %ntid.x;\n"
    "  mov.u32 %r2, %tid.x;\n"
    "  mad.lo.u32 %r3, %r0, %r1, %r2;\n"
    "  ld.param.u32 %r4, [n];\n"
    "  setp.ge.u32 %p, %r3, %r4;\n"
    "  @%p bra DONE;\n"
    "  ld.param.u64 %d0, [y];\n"
    "  ld.param.u64 %d1, [x];\n"
    "  ld.param.f32 %f0, [a];\n"
    "  cvta.to.global.u64 %d2, %d0;\n"
    "  cvta.to.global.u64 %d3, %d1;\n"
    "  mul.wide.u32 %d4, %r3, 4;\n"
    "  add.u64 %d2, %d2, %d4;\n"
    "  add.u64 %d3, %d3, %d4;\n"
    "  ld.global.f32 %f1, [%d3];\n"
    "  ld.global.f32 %f2, [%d2];\n"
    "  fma.rn.f32 %f3, %f0, %f1, %f2;\n"
    "  st.global.f32 [%d2], %f3;\n"
    "DONE:\n"
    "  ret;\n"
    "}\n"
    // Each block of 64 threads reverses its part of x and multiplies it by `scale`.
    ".visible .entry reverse(.param .u64 x)\n"
    "{\n"
    "  .reg .b32 %r<6>;\n"
    "  .reg .f32 %f<4>;\n"
    "  .reg .b64 %d<5>;\n"
    "  ld.param.u64 %d0, [x];\n"
    "  cvta.to.global.u64 %d1, %d0;\n"
    "  mov.u32 %r0, %ctaid.x;\n"
    "  mov.u32 %r1, %tid.x;\n"
    "  mad.lo.u32 %r2, %r0, 64, %r1;\n"
    "  mul.wide.u32 %d2, %r2, 4;\n"
    "  add.u64 %d3, %d1, %d2;\n"
    "  ld.global.f32 %f0, [%d3];\n"
    "  shl.b32 %r3, %r1, 2;\n"
    "  mov.u32 %r4, scratch;\n"
    "  add.u32 %r5, %r4, %r3;\n"
    "  st.shared.f32 [%r5], %f0;\n"
    "  bar.sync 0;\n"
    "  sub.u32 %r3, 252, %r3;\n"
    "  add.u32 %r5, %r4, %r3;\n"
    "  ld.shared.f32 %f1, [%r5];\n"
    "  ld.global.f32 %f2, [scale];\n"
    "  mul.f32 %f3, %f1, %f2;\n"
    "  st.global.f32 [%d3], %f3;\n"
    "  ret;\n"
    "}\n"
    ".visible .entry store_at(.param .u64 address)\n"
    "{\n"
    "  .reg .b64 %d<2>;\n"
    "  ld.param.u64 %d0, [address];\n"
    "  cvta.to.global.u64 %d1, %d0;\n"
    "  st.global.u32 [%d1], 7;\n"
    "  ret;\n"
    "}\n";

/// Loads a module with logs, as programs that ship PTX do; `error` has 8192 bytes.
static CUresult load(CUmodule* module, const void* image, char* info, char* error) {
  float wall_time = -1;
  CUjit_option names[] = {CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                          CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                          CU_JIT_LOG_VERBOSE,      CU_JIT_WALL_TIME};
  void* values[] = {info, (void*)(size_t)8192, error, (void*)(size_t)8192, (void*)(size_t)1, NULL};
  info[0] = error[0] = '\0';
  CUresult result = cuModuleLoadDataEx(module, image, 6, names, values);
  memcpy(&wall_time, &values[5], sizeof wall_time);
  if (result == CUDA_SUCCESS) REQUIRE(wall_time >= 0);
  return result;
}

static void fill(float* x, float* y) {
  for (int i = 0; i < kCount; ++i) {
    x[i] = (float)i;
    y[i] = 1;
  }
}

static void devices(void) {
  int version = 0, count = -1, major = 0, minor = 0, sms = 0, warp = 0;
  size_t bytes = 0;
  char name[100] = "";
  CUdevice device = -1;
  CUuuid uuid;
  GOOD(cuDriverGetVersion(&version));
  REQUIRE(version >= 12000);
  GIVES(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
  GOOD(cuInit(0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuInit(1));
  GOOD(cuDeviceGetCount(&count));
  REQUIRE(count >= 1);
  GOOD(cuDeviceGet(&device, 0));
  GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, count));
  GOOD(cuDeviceGetName(name, sizeof name, device));
  GOOD(cuDeviceTotalMem(&bytes, device));
  GOOD(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  GOOD(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  GOOD(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  GOOD(cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
  GOOD(cuDeviceGetUuid(&uuid, device));
  REQUIRE(name[0] != '\0' && bytes > (size_t)1 << 30 && sms > 0 && warp == 32);
  REQUIRE(10 * major + minor >= 70);
  printf("device 0: %s, sm_%d%d, %d SMs, driver %d\n", name, major, minor, sms, version);
}

static void words(void) {
  const char* text = NULL;
  GOOD(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  REQUIRE(strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
  GOOD(cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  REQUIRE(strcmp(text, "an illegal memory access was encountered") == 0);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGetErrorString((CUresult)12345, &text));
  REQUIRE(text == NULL);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)12345, &text));
  REQUIRE(text == NULL);
}

static void proc_address(void) {
  CUresult (*alloc)(CUdeviceptr*, size_t) = NULL;
  CUdriverProcAddressQueryResult status;
  void *entry = NULL, *legacy = NULL;
  CUdeviceptr memory = 0;
  GOOD(cuGetProcAddress("cuMemAlloc", &entry, 3020, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  REQUIRE(status == CU_GET_PROC_ADDRESS_SUCCESS && entry != NULL);
  memcpy(&alloc, &entry, sizeof alloc);
  GOOD(alloc(&memory, 64));
  GOOD(cuMemFree(memory));
  GOOD(cuGetProcAddress("cuNoSuchFunction", &entry, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  REQUIRE(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND && entry == NULL);
  GOOD(cuGetProcAddress("cuLaunchKernelEx", &entry, 11000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  REQUIRE(status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT && entry == NULL);
  GOOD(cuGetProcAddress("cuLaunchKernel", &legacy, 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                        &status));
  GOOD(cuGetProcAddress("cuLaunchKernel", &entry, 12000,
                        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
  REQUIRE(legacy != NULL && entry != NULL && entry != legacy);
}

static void refusals(void) {
  static char info[8192], error[8192];
  char* bad = malloc(sizeof kPtx);
  CUmodule module = NULL;
  memcpy(bad, kPtx, sizeof kPtx);
  memcpy(strstr(bad, "fma.rn.f32"), "fma.xx.f32", 10);
  GIVES(CUDA_ERROR_INVALID_PTX, load(&module, bad, info, error));
  REQUIRE(strstr(error, "29") != NULL);  // the line
  REQUIRE(strstr(error, "xx") != NULL);
  printf("bad PTX is refused: %s\n", error);
  memcpy(bad, kPtx, sizeof kPtx);
  memcpy(strstr(bad, "7.0"), "9.9", 3);
  GIVES(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, load(&module, bad, info, error));
  REQUIRE(error[0] != '\0');
  free(bad);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, NULL));
  GIVES(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "no/such/file.ptx"));
}

static void wrong_calls(CUmodule module) {
  CUfunction function = NULL;
  CUstream stream = NULL;
  CUevent first, second;
  float milliseconds = 0;
  void* no_parameters[] = {NULL};
  GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "nothing"));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&function, NULL, "saxpy"));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree((CUdeviceptr)0x1234));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, 0, no_parameters, 0));
  GOOD(cuModuleGetFunction(&function, module, "saxpy"));
  GIVES(CUDA_ERROR_INVALID_VALUE,
        cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, 0, no_parameters, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE,
        cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, 0, no_parameters, 0));
  GOOD(cuEventCreate(&first, CU_EVENT_DEFAULT));
  GOOD(cuEventCreate(&second, CU_EVENT_DEFAULT));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, first, second));
  GOOD(cuEventDestroy(first));
  GOOD(cuEventDestroy(second));
  GOOD(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  GOOD(cuStreamDestroy(stream));
}

static void launches(CUmodule module) {
  CUfunction saxpy = NULL;
  CUdeviceptr x, y;
  CUstream stream;
  CUevent start, stop;
  float *host_x, *host_y, milliseconds = -1, a = 3;
  unsigned n = kCount;
  GOOD(cuModuleGetFunction(&saxpy, module, "saxpy"));
  GOOD(cuMemAlloc(&x, kBytes));
  GOOD(cuMemAlloc(&y, kBytes));
  GOOD(cuMemAllocHost((void**)&host_x, kBytes));
  GOOD(cuMemHostAlloc((void**)&host_y, kBytes, CU_MEMHOSTALLOC_PORTABLE));
  GOOD(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  GOOD(cuEventCreate(&start, CU_EVENT_DEFAULT));
  GOOD(cuEventCreate(&stop, CU_EVENT_BLOCKING_SYNC));
  fill(host_x, host_y);

  void* parameters[] = {&y, &x, &a, &n};
  GOOD(cuEventRecord(start, stream));
  GOOD(cuMemcpyHtoDAsync(x, host_x, kBytes, stream));
  GOOD(cuMemcpyHtoDAsync(y, host_y, kBytes, stream));
  GOOD(cuLaunchKernel(saxpy, 8, 1, 1, 128, 1, 1, 0, stream, parameters, NULL));
  GOOD(cuMemcpyDtoHAsync(host_y, y, kBytes, stream));
  GOOD(cuEventRecord(stop, stream));
  GOOD(cuEventSynchronize(stop));
  GOOD(cuEventQuery(stop));
  GOOD(cuStreamQuery(stream));
  GOOD(cuEventElapsedTime(&milliseconds, start, stop));
  REQUIRE(milliseconds > 0 && milliseconds < 60000);
  for (int i = 0; i < kCount; ++i) REQUIRE(host_y[i] == 3 * (float)i + 1);

  // The same with the parameters as one block, then with a configuration.
  struct {
    CUdeviceptr y, x;
    float a;
    unsigned n;
  } block = {y, x, 1, kCount};
  size_t block_bytes = sizeof block;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &block_bytes, CU_LAUNCH_PARAM_END};
  GOOD(cuLaunchKernel(saxpy, 8, 1, 1, 128, 1, 1, 0, stream, NULL, extra));
  CUlaunchConfig config;
  memset(&config, 0, sizeof config);
  config.gridDimX = 4;
  config.blockDimX = 256;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  GOOD(cuLaunchKernelEx(&config, saxpy, parameters, NULL));
  GOOD(cuStreamSynchronize(stream));
  GOOD(cuMemcpyDtoH(host_y, y, kBytes));
  for (int i = 0; i < kCount; ++i) REQUIRE(host_y[i] == 7 * (float)i + 1);

  GOOD(cuMemsetD32(y, 0x3f800000, kCount / 2));
  GOOD(cuMemcpyDtoD(y + kBytes / 2, y, kBytes / 2));
  GOOD(cuMemcpyDtoH(host_y, y, kBytes));
  for (int i = 0; i < kCount; ++i) REQUIRE(host_y[i] == 1);

  CUdeviceptr base = 0;
  size_t bytes = 0;
  GOOD(cuMemGetAddressRange(&base, &bytes, y + 100));
  REQUIRE(base == y && bytes == kBytes);
  GOOD(cuEventDestroy(start));
  GOOD(cuEventDestroy(stop));
  GOOD(cuStreamDestroy(stream));
  GOOD(cuMemFreeHost(host_x));
  GOOD(cuMemFreeHost(host_y));
  GOOD(cuMemFree(x));
  GOOD(cuMemFree(y));
}

static void functions(CUmodule module) {
  CUfunction reverse = NULL;
  CUdeviceptr x, scale;
  size_t scale_bytes = 0;
  float host[128], five = 5;
  int value = 0, grid = 0, block = 0, blocks = 0;
  GOOD(cuModuleGetFunction(&reverse, module, "reverse"));
  GOOD(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, reverse));
  REQUIRE(value == 1024);
  GOOD(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, reverse));
  REQUIRE(value > 0 && value < 256);
  GOOD(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, reverse));
  REQUIRE(value == 70);
  GOOD(cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 * 1024));
  GOOD(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse, 64, 256));
  REQUIRE(blocks >= 16 && blocks <= 32);
  GOOD(cuOccupancyMaxPotentialBlockSize(&grid, &block, reverse, NULL, 0, 0));
  REQUIRE(grid > 0 && block > 0 && block <= 1024 && block % 32 == 0);

  GOOD(cuModuleGetGlobal(&scale, &scale_bytes, module, "scale"));
  REQUIRE(scale_bytes == sizeof(float));
  GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&scale, NULL, module, "nothing"));
  GOOD(cuModuleGetGlobal(&scale, NULL, module, "scale"));
  GOOD(cuMemcpyHtoD(scale, &five, sizeof five));
  GOOD(cuMemAlloc(&x, sizeof host));
  for (int i = 0; i < 128; ++i) host[i] = (float)i;
  GOOD(cuMemcpyHtoD(x, host, sizeof host));
  void* parameters[] = {&x};
  GOOD(cuLaunchKernel(reverse, 2, 1, 1, 64, 1, 1, 256, NULL, parameters, NULL));
  GOOD(cuMemcpyDtoH(host, x, sizeof host));
  for (int i = 0; i < 128; ++i) REQUIRE(host[i] == 5 * (float)(i / 64 * 64 + 63 - i % 64));
  GOOD(cuMemFree(x));
}

static void CUDA_CB count_up(void* counter) { ++*(int*)counter; }

static void graph_by_capture(CUmodule module) {
  CUfunction saxpy = NULL;
  CUdeviceptr x, y;
  CUstream stream, side;
  CUevent fork_event, join_event;
  CUgraph graph = NULL;
  CUgraphExec executable = NULL;
  CUstreamCaptureStatus status;
  size_t nodes = 0;
  float host_x[kCount], host_y[kCount], a = 1;
  unsigned n = kCount;
  int called = 0;
  GOOD(cuModuleGetFunction(&saxpy, module, "saxpy"));
  GOOD(cuMemAlloc(&x, kBytes));
  GOOD(cuMemAlloc(&y, kBytes));
  GOOD(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  GOOD(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
  GOOD(cuEventCreate(&fork_event, CU_EVENT_DISABLE_TIMING));
  GOOD(cuEventCreate(&join_event, CU_EVENT_DISABLE_TIMING));
  fill(host_x, host_y);
  GOOD(cuMemcpyHtoD(y, host_y, kBytes));

  void* parameters[] = {&y, &x, &a, &n};
  GOOD(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  GOOD(cuStreamIsCapturing(stream, &status));
  REQUIRE(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  GOOD(cuEventRecord(fork_event, stream));
  GOOD(cuStreamWaitEvent(side, fork_event, 0));
  GOOD(cuMemcpyHtoDAsync(x, host_x, kBytes, side));
  GOOD(cuEventRecord(join_event, side));
  GOOD(cuLaunchHostFunc(stream, count_up, &called));
  GOOD(cuStreamWaitEvent(stream, join_event, 0));
  GOOD(cuLaunchKernel(saxpy, 8, 1, 1, 128, 1, 1, 0, stream, parameters, NULL));
  a = 100;  // the launch has its copy
  GOOD(cuMemcpyDtoHAsync(host_y, y, kBytes, stream));
  GOOD(cuStreamEndCapture(stream, &graph));
  REQUIRE(called == 0);
  GOOD(cuGraphGetNodes(graph, NULL, &nodes));
  REQUIRE(nodes == 4);
  GOOD(cuGraphInstantiate(&executable, graph, 0));
  GOOD(cuGraphDestroy(graph));
  for (int i = 0; i < 3; ++i) GOOD(cuGraphLaunch(executable, stream));
  GOOD(cuStreamSynchronize(stream));
  REQUIRE(called == 3);
  for (int i = 0; i < kCount; ++i) REQUIRE(host_y[i] == 3 * (float)i + 1);
  GOOD(cuGraphExecDestroy(executable));

  // What synchronises cannot be captured, and spoils the capture.
  GOOD(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
  GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
  GOOD(cuStreamSynchronize(stream));
  GOOD(cuEventDestroy(fork_event));
  GOOD(cuEventDestroy(join_event));
  GOOD(cuStreamDestroy(side));
  GOOD(cuStreamDestroy(stream));
  GOOD(cuMemFree(x));
  GOOD(cuMemFree(y));
}

static void graph_by_hand(CUmodule module, CUcontext context) {
  CUfunction saxpy = NULL;
  CUdeviceptr x, y;
  CUgraph graph = NULL;
  CUgraphExec executable = NULL;
  CUgraphNode to_x, clear_y, kernel, to_host;
  CUgraphNodeType type;
  float host_x[kCount], host_y[kCount], a = 2;
  unsigned n = kCount;
  GOOD(cuModuleGetFunction(&saxpy, module, "saxpy"));
  GOOD(cuMemAlloc(&x, kBytes));
  GOOD(cuMemAlloc(&y, kBytes));
  fill(host_x, host_y);

  GOOD(cuGraphCreate(&graph, 0));
  CUDA_MEMCPY3D copy;
  memset(&copy, 0, sizeof copy);
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host_x;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = x;
  copy.WidthInBytes = kBytes;
  copy.Height = copy.Depth = 1;
  GOOD(cuGraphAddMemcpyNode(&to_x, graph, NULL, 0, &copy, context));
  CUDA_MEMSET_NODE_PARAMS clear;
  memset(&clear, 0, sizeof clear);
  clear.dst = y;
  clear.value = 0;
  clear.elementSize = 4;
  clear.width = kCount;
  clear.height = 1;
  GOOD(cuGraphAddMemsetNode(&clear_y, graph, NULL, 0, &clear, context));
  void* parameters[] = {&y, &x, &a, &n};
  CUDA_KERNEL_NODE_PARAMS launch;
  memset(&launch, 0, sizeof launch);
  launch.func = saxpy;
  launch.gridDimX = 4;
  launch.blockDimX = 256;
  launch.gridDimY = launch.gridDimZ = launch.blockDimY = launch.blockDimZ = 1;
  launch.kernelParams = parameters;
  CUgraphNode before_kernel[] = {to_x, clear_y};
  GOOD(cuGraphAddKernelNode(&kernel, graph, before_kernel, 2, &launch));
  memset(&copy, 0, sizeof copy);
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = y;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host_y;
  copy.WidthInBytes = kBytes;
  copy.Height = copy.Depth = 1;
  GOOD(cuGraphAddMemcpyNode(&to_host, graph, &kernel, 1, &copy, context));
  GOOD(cuGraphNodeGetType(kernel, &type));
  REQUIRE(type == CU_GRAPH_NODE_TYPE_KERNEL);
  GOOD(cuGraphInstantiate(&executable, graph, 0));
  GOOD(cuGraphLaunch(executable, NULL));
  GOOD(cuCtxSynchronize());
  for (int i = 0; i < kCount; ++i) REQUIRE(host_y[i] == 2 * (float)i);

  a = 5;  // into the executable graph
  GOOD(cuGraphExecKernelNodeSetParams(executable, kernel, &launch));
  GOOD(cuGraphLaunch(executable, NULL));
  GOOD(cuCtxSynchronize());
  for (int i = 0; i < kCount; ++i) REQUIRE(host_y[i] == 5 * (float)i);
  GOOD(cuGraphExecDestroy(executable));
  GOOD(cuGraphDestroy(graph));
  GOOD(cuMemFree(x));
  GOOD(cuMemFree(y));
}

/// A thread has no context until it makes one current.
static void* other_thread(void* context) {
  CUdeviceptr memory;
  CUcontext popped = NULL;
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&memory, 64));
  GOOD(cuCtxPushCurrent(context));
  GOOD(cuMemAlloc(&memory, 64));
  GOOD(cuMemsetD8Async(memory, 1, 64, CU_STREAM_PER_THREAD));
  GOOD(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  GOOD(cuMemFree(memory));
  GOOD(cuCtxPopCurrent(&popped));
  REQUIRE(popped == context);
  return NULL;
}

/// The last part: nothing works after it.
static void fault(CUmodule module) {
  CUfunction store_at = NULL;
  CUdeviceptr address = 0x10, memory = 0;
  CUevent event;
  GOOD(cuModuleGetFunction(&store_at, module, "store_at"));
  GOOD(cuEventCreate(&event, CU_EVENT_DEFAULT));
  void* parameters[] = {&address};
  GOOD(cuLaunchKernel(store_at, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
  GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&memory, 64));
  GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventRecord(event, NULL));
  GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(NULL));
  GIVES(CUDA_ERROR_ILLEGAL_ADDRESS,
        cuLaunchKernel(store_at, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
}

static char* read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  char* content = calloc(1, 1 << 20);
  size_t bytes = fread(content, 1, (1 << 20) - 1, file);
  fclose(file);
  return bytes != 0 ? content : NULL;
}

int main(int argc, char** argv) {
  static char info[8192], error[8192];
  CUdevice device = 0;
  CUcontext context = NULL;
  CUmodule module = NULL;
  pthread_t thread;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc > 1) {
    char* image = read_file(argv[1]);
    REQUIRE(image != NULL);
    GOOD(cuInit(0));
    GOOD(cuDevicePrimaryCtxRetain(&context, device));
    GOOD(cuCtxSetCurrent(context));
    CUresult result = load(&module, image, info, error);
    printf("%d\n%s\n", (int)result, error);
    if (result == CUDA_SUCCESS) launches(module);
    return 0;
  }
  devices();
  words();
  GOOD(cuDeviceGet(&device, 0));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
  GOOD(cuDevicePrimaryCtxRetain(&context, device));
  GOOD(cuCtxSetCurrent(context));
  GOOD(load(&module, kPtx, info, error));
  proc_address();
  refusals();
  wrong_calls(module);
  launches(module);
  functions(module);
  graph_by_capture(module);
  graph_by_hand(module, context);
  REQUIRE(pthread_create(&thread, NULL, other_thread, context) == 0);
  REQUIRE(pthread_join(thread, NULL) == 0);
  fault(module);
  GOOD(cuDevicePrimaryCtxRelease(device));
  printf("%d checks passed\n", checks);
  return 0;
}
