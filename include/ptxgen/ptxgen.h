// ptxgen/ptxgen.h - the C API, for C, Rust, Python and others; long because it is one header
//
// Build GPU kernels at run time as PTX, load them through the CUDA Driver API or on an embedded
// emulator, and launch them. C99. Link libptxgen_c (CMake: ptxgen::c).
//
// Handles. Functions of this header create opaque objects; `..._free` releases them. A handle keeps
// what it depends on alive: handles of one device, the device's among them, can be freed in any
// order; memory, modules and the context are released with the last handle that needs them.
// `..._free(NULL)` does nothing. Do not use a handle after it was freed.
//
// Status. Functions return PTXGEN_OK (0) or another ptxgen_status. Results are written to the last
// parameters; a failure leaves them unchanged, except that handles are set to NULL. Status numbers
// and names are stable. No function ends the process, and no C++ exception leaves the library.
//
// Errors. A call that fails stores its error on its first handle: ptxgen_last_error(handle).
// Without a handle (NULL was given, or the function takes none) the error is stored for the thread:
// ptxgen_last_error(NULL). The next failure replaces it; a successful call does not.
//
// Threads. Functions may be called from any thread. Different handles are independent. One handle
// may be used from several threads at once, but no thread may use it while it is freed; order
// writes, reads and launches that access the same memory by streams or events. The returned status
// is always that of the call; ptxgen_last_error(handle) is the last error of any thread. Callbacks
// are called with no lock held and may call this library; they must not throw.
//
// Structures begin with `struct_bytes`. The caller sets it to sizeof the structure before the call,
// for input and output; later versions append fields. Zero fields mean the default. Text is UTF-8.
// Sizes are bytes unless stated otherwise. Returned strings live as long as their handle.
#ifndef PTXGEN_PTXGEN_H
#define PTXGEN_PTXGEN_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#if defined(PTXGEN_C_BUILD)
#define PTXGEN_API __declspec(dllexport)
#else
#define PTXGEN_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define PTXGEN_API __attribute__((visibility("default")))
#else
#define PTXGEN_API
#endif

#if defined(__cplusplus)
#define PTXGEN_NOEXCEPT noexcept
extern "C" {
#else
#define PTXGEN_NOEXCEPT
#endif

// ---- version ------------------------------------------------------------------------------------

/// Version of the library that this header belongs to.
#define PTXGEN_VERSION_MAJOR 0
#define PTXGEN_VERSION_MINOR 1
#define PTXGEN_VERSION_PATCH 0
/// Incremented when a function or a field is added. Nothing is removed.
#define PTXGEN_C_API 1

/// Version of the running library. Each pointer may be NULL.
PTXGEN_API void ptxgen_version(int* major, int* minor, int* patch) PTXGEN_NOEXCEPT;
/// "0.1.0"
PTXGEN_API const char* ptxgen_version_string(void) PTXGEN_NOEXCEPT;
/// PTXGEN_C_API of the running library; if it is less than the header's, functions may be missing.
PTXGEN_API int ptxgen_c_api(void) PTXGEN_NOEXCEPT;

// ---- status and errors --------------------------------------------------------------------------

typedef int32_t ptxgen_status;
enum {
  PTXGEN_OK = 0,
  PTXGEN_ERROR_BUILD = 1,     ///< building PTX: a kernel's parameters, CUDA C++ source
  PTXGEN_ERROR_VERIFY = 2,    ///< invalid PTX: syntax, types, targets, gates
  PTXGEN_ERROR_OPTIMIZE = 3,  ///< optimisation passes
  PTXGEN_ERROR_ASSEMBLE = 4,  ///< PTX to machine code
  PTXGEN_ERROR_LOAD = 5,      ///< the driver rejects a module
  PTXGEN_ERROR_LAUNCH = 6,    ///< arguments, limits, capture; also a fault in a kernel
  PTXGEN_ERROR_CACHE = 7,     ///< the module cache
  PTXGEN_ERROR_EMULATE = 8,   ///< the emulator itself
  PTXGEN_ERROR_DEVICE = 9,    ///< drivers, devices, memory, streams
  PTXGEN_ERROR_IO = 10,       ///< files and programs
  PTXGEN_ERROR_USAGE = 11,    ///< an invalid call: NULL, out of range
  PTXGEN_ERROR_MEMORY = 12,   ///< the host is out of memory
  PTXGEN_ERROR_INTERNAL = 13  ///< a bug of the library
};

/// "ok", "build", ... "internal"; "unknown" for other numbers.
PTXGEN_API const char* ptxgen_status_name(ptxgen_status status) PTXGEN_NOEXCEPT;

typedef struct ptxgen_error ptxgen_error;

/// The last error of a handle of any kind, or of this thread for NULL; NULL if there was none.
/// Returns a copy; free it with ptxgen_error_free.
PTXGEN_API ptxgen_error* ptxgen_last_error(const void* handle) PTXGEN_NOEXCEPT;
PTXGEN_API void ptxgen_error_free(ptxgen_error* error) PTXGEN_NOEXCEPT;
/// The same as text: writes ptxgen_error_text, truncated to `bytes` with a final 0, and returns the
/// length of the full text. `buffer` may be NULL if `bytes` is 0.
PTXGEN_API size_t ptxgen_last_error_text(const void* handle, char* buffer,
                                         size_t bytes) PTXGEN_NOEXCEPT;

/// The fields of an error; empty text or 0 if a field does not apply, and for NULL.
PTXGEN_API ptxgen_status ptxgen_error_status(const ptxgen_error* error) PTXGEN_NOEXCEPT;
/// A stable short name for programs: "not-found", "capture-miss", ...
PTXGEN_API const char* ptxgen_error_code(const ptxgen_error* error) PTXGEN_NOEXCEPT;
/// One sentence for users.
PTXGEN_API const char* ptxgen_error_message(const ptxgen_error* error) PTXGEN_NOEXCEPT;
/// All fields as lines, the message first and the log last.
PTXGEN_API const char* ptxgen_error_text(const ptxgen_error* error) PTXGEN_NOEXCEPT;
PTXGEN_API const char* ptxgen_error_kernel(const ptxgen_error* error) PTXGEN_NOEXCEPT;
/// "sm_90, PTX 8.0"
PTXGEN_API const char* ptxgen_error_target(const ptxgen_error* error) PTXGEN_NOEXCEPT;
/// The PTX or source file, its line and column (from 1) and the lines around.
PTXGEN_API const char* ptxgen_error_file(const ptxgen_error* error) PTXGEN_NOEXCEPT;
PTXGEN_API uint32_t ptxgen_error_line(const ptxgen_error* error) PTXGEN_NOEXCEPT;
PTXGEN_API uint32_t ptxgen_error_column(const ptxgen_error* error) PTXGEN_NOEXCEPT;
PTXGEN_API const char* ptxgen_error_excerpt(const ptxgen_error* error) PTXGEN_NOEXCEPT;
/// The CUresult, or a tool's exit status.
PTXGEN_API int ptxgen_error_driver_status(const ptxgen_error* error) PTXGEN_NOEXCEPT;
/// The complete log of the driver or tool.
PTXGEN_API const char* ptxgen_error_log(const ptxgen_error* error) PTXGEN_NOEXCEPT;

// ---- log ----------------------------------------------------------------------------------------

typedef int32_t ptxgen_log_level;
enum {
  PTXGEN_LOG_OFF = 0,
  PTXGEN_LOG_ERROR = 1,
  PTXGEN_LOG_WARN = 2,
  PTXGEN_LOG_INFO = 3,
  PTXGEN_LOG_DEBUG = 4,
  PTXGEN_LOG_TRACE = 5
};

/// `message` has `bytes` bytes and a final 0; it is valid during the call. Any thread may call.
typedef void (*ptxgen_log_callback)(void* user, ptxgen_log_level level, const char* message,
                                    size_t bytes);

/// Sends messages of devices opened later to `callback` instead of standard error. NULL: to
/// standard error, at the level of PTXGEN_LOG. A device keeps the callback it was opened with; it
/// must stay callable until the device's last handle is freed.
PTXGEN_API ptxgen_status ptxgen_set_log(ptxgen_log_level level, ptxgen_log_callback callback,
                                        void* user) PTXGEN_NOEXCEPT;

// ---- devices ------------------------------------------------------------------------------------

typedef struct ptxgen_device ptxgen_device;
typedef struct ptxgen_buffer ptxgen_buffer;
typedef struct ptxgen_stream ptxgen_stream;
typedef struct ptxgen_event ptxgen_event;
typedef struct ptxgen_graph ptxgen_graph;
typedef struct ptxgen_program ptxgen_program;
typedef struct ptxgen_module ptxgen_module;
typedef struct ptxgen_function ptxgen_function;
typedef struct ptxgen_plan ptxgen_plan;
typedef struct ptxgen_image ptxgen_image;

/// One setting, by the name of its environment variable: {"PTXGEN_CACHE_DIR", "cache"}.
typedef struct ptxgen_setting {
  const char* variable;
  const char* value;
} ptxgen_setting;

typedef struct ptxgen_device_options {
  size_t struct_bytes;
  /// Override values of the environment.
  const ptxgen_setting* settings;
  size_t setting_count;
  /// Not 0: the environment is ignored, only `settings` count.
  int32_t ignore_environment;
  /// Not 0: kernels are loaded without verifier and gates, with a warning in the log.
  int32_t no_gates;
  /// Options of the driver's compiler; `optimization` needs `set_optimization`.
  uint32_t max_registers;
  int32_t set_optimization;
  uint32_t optimization;
  int32_t line_info;
  /// Not 0: every load compiles, bypassing the module cache and the driver's: for measurements.
  int32_t cold;
  /// Not 0: errors that the emulated device finds are returned by the next call that waits
  /// (PTXGEN_STRICT=1): PTXGEN_ERROR_LAUNCH, with the rule as code. The device stays usable.
  int32_t strict;
} ptxgen_device_options;

enum { PTXGEN_DEVICE_CUDA = 0, PTXGEN_DEVICE_EMULATOR = 1, PTXGEN_DEVICE_HOST = 2 };

typedef struct ptxgen_device_info {
  size_t struct_bytes;
  int32_t kind;            ///< PTXGEN_DEVICE_...
  int32_t ordinal;         ///< in its driver
  char name[256];          ///< "NVIDIA H200"
  char target[32];         ///< target of generated kernels: "sm_90"
  uint32_t sm;             ///< 90: compute capability 9.0
  int32_t driver_version;  ///< 13000 is 13.0
  int32_t newest_ptx;      ///< newest PTX version of the driver, 10 * major + minor; 0: unknown
  uint32_t multiprocessors;
  uint32_t threads_per_block;
  uint32_t threads_per_multiprocessor;
  uint32_t block[3];  ///< maximum threads in x, y, z
  uint32_t grid[3];   ///< maximum blocks in x, y, z
  uint32_t shared_per_block;
  uint32_t shared_per_block_opt_in;
  uint32_t shared_per_multiprocessor;
  uint32_t reserved_shared_per_block;
  uint32_t registers_per_block;  ///< 32-bit registers
  uint32_t l2_bytes;
  uint32_t clock_khz;
  uint64_t memory_bytes;
  int32_t cooperative;
  int32_t clusters;
} ptxgen_device_info;

/// Opens a device with its context, module cache and launcher. `name`: "auto" (libcuda's first
/// device, else the emulator), "cuda:N", "emulator", "emulator:GPU" (h200, rtx4090, ...), "host"
/// (kernels as functions of the host); NULL or "": PTXGEN_DEVICE. `options` may be NULL. Each call
/// creates a new cache.
PTXGEN_API ptxgen_status ptxgen_device_open(const char* name, const ptxgen_device_options* options,
                                            ptxgen_device** device) PTXGEN_NOEXCEPT;
PTXGEN_API void ptxgen_device_free(ptxgen_device* device) PTXGEN_NOEXCEPT;
/// The devices that can be opened, libcuda's first: writes their number and the first `capacity` of
/// them. `infos` may be NULL if `capacity` is 0; `struct_bytes` of the first applies to all.
PTXGEN_API ptxgen_status ptxgen_list_devices(ptxgen_device_info* infos, size_t capacity,
                                             size_t* count) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_device_get_info(const ptxgen_device* device,
                                                ptxgen_device_info* info) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_device_memory(const ptxgen_device* device, uint64_t* free_bytes,
                                              uint64_t* total_bytes) PTXGEN_NOEXCEPT;
/// Waits for all work of the device's context. Reports a fault in a kernel that no earlier call
/// reported: PTXGEN_ERROR_LAUNCH, code "device-fault".
PTXGEN_API ptxgen_status ptxgen_device_synchronize(const ptxgen_device* device) PTXGEN_NOEXCEPT;
/// Whether a fault has made the context unusable. To recover, free everything made from the device
/// and the device, call ptxgen_device_reset and open it again.
PTXGEN_API ptxgen_status ptxgen_device_poisoned(const ptxgen_device* device,
                                                int32_t* poisoned) PTXGEN_NOEXCEPT;
/// Destroys the device's primary context for the whole process, whether in use or not.
PTXGEN_API ptxgen_status ptxgen_device_reset(const char* name,
                                             const ptxgen_device_options* options) PTXGEN_NOEXCEPT;

// ---- findings -----------------------------------------------------------------------------------

/// Findings of launches on the emulated device: races, uninitialised reads, accesses out of bounds.
/// A GPU has none. Each is also logged at once, errors at level error, warnings at warn. Findings
/// of ptxgen_check have the same form, without a launch.
enum { PTXGEN_FINDING_ERROR = 0, PTXGEN_FINDING_WARNING = 1, PTXGEN_FINDING_NOTE = 2 };

/// One finding of one launch. Equal findings of a launch are one with a count.
typedef struct ptxgen_finding {
  size_t struct_bytes;
  uint64_t launch;   ///< as in ptxgen_launch_record
  uint64_t count;    ///< how often it happened in the launch
  int32_t severity;  ///< PTXGEN_FINDING_...
  int32_t fault;     ///< not 0: it stopped the kernel; the context is lost
  const char* rule;  ///< a stable short name: "uninitialized-read"
  const char* message;
  const char* kernel;
  const char* statement;  ///< the PTX statement
  const char* file;       ///< of the builder call, else the PTX file, or empty
  uint32_t line;          ///< in `file`, or 0
  const char* text;       ///< the complete text, as logged
  uint32_t grid[3];       ///< of the launch
  uint32_t block[3];
  uint32_t block_index[3];   ///< of the first thread
  uint32_t thread_index[3];  ///< in that block
  const char* source_file;   ///< of the `.loc` lines of the PTX, or empty
  uint32_t source_line;      ///< in `source_file`, or 0
  uint32_t other_line;       ///< PTX line of the second access of a race, or 0
} ptxgen_finding;

/// A list of findings: a snapshot of a device's, or those of a check.
typedef struct ptxgen_findings ptxgen_findings;

/// The findings of kernels loaded through this device since they were cleared, at most the first
/// 1,000.
PTXGEN_API ptxgen_status ptxgen_findings_create(const ptxgen_device* device,
                                                ptxgen_findings** findings) PTXGEN_NOEXCEPT;
PTXGEN_API void ptxgen_findings_free(ptxgen_findings* findings) PTXGEN_NOEXCEPT;
/// 0 for NULL.
PTXGEN_API size_t ptxgen_findings_count(const ptxgen_findings* findings) PTXGEN_NOEXCEPT;
/// The finding of that index, from 0; its texts live as long as the list. PTXGEN_ERROR_USAGE
/// ("out-of-range") for a larger index.
PTXGEN_API ptxgen_status ptxgen_findings_get(const ptxgen_findings* findings, size_t index,
                                             ptxgen_finding* finding) PTXGEN_NOEXCEPT;

/// Counts of all findings since they were cleared, including those beyond the first 1,000. Each
/// pointer may be NULL.
PTXGEN_API ptxgen_status ptxgen_device_count_findings(const ptxgen_device* device, uint64_t* errors,
                                                      uint64_t* warnings,
                                                      uint64_t* notes) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_device_clear_findings(ptxgen_device* device) PTXGEN_NOEXCEPT;

/// Called by a thread of the device for each finding, before any call that waits for the launch
/// returns. `finding` and its texts are valid during the call. Launches, copies and waits are
/// refused inside.
typedef void (*ptxgen_finding_callback)(void* user, const ptxgen_finding* finding);
/// Replaces the callback of the device; NULL: none. It must stay callable until the device's last
/// handle is freed.
PTXGEN_API ptxgen_status ptxgen_device_on_finding(ptxgen_device* device,
                                                  ptxgen_finding_callback callback,
                                                  void* user) PTXGEN_NOEXCEPT;

// ---- counters -----------------------------------------------------------------------------------

/// Global or local memory. A request is an instruction of a warp with at least one active lane.
typedef struct ptxgen_memory_counters {
  uint64_t requests;
  uint64_t sectors;        ///< distinct 32-byte sectors, summed over requests
  uint64_t ideal_sectors;  ///< sectors that the bytes would fill, summed over requests
  uint64_t bytes;          ///< requested, summed over lanes
} ptxgen_memory_counters;

/// Shared memory of the block.
typedef struct ptxgen_shared_counters {
  uint64_t requests;
  uint64_t wavefronts;
  uint64_t ideal_wavefronts;
  uint64_t bank_conflicts;  ///< wavefronts - ideal_wavefronts
  uint64_t bytes;
} ptxgen_shared_counters;

/// Exact counts of launches on the emulated device; a GPU counts nothing.
typedef struct ptxgen_counters {
  size_t struct_bytes;
  uint64_t launches;
  uint64_t warp_instructions;
  uint64_t thread_instructions;  ///< active lanes, summed over warp instructions
  uint64_t branches;             ///< executed by warps
  uint64_t divergent_branches;
  uint64_t barriers;  ///< of the block, executed by warps
  uint64_t atomics;   ///< executed by warps
  ptxgen_memory_counters global_load;
  ptxgen_memory_counters global_store;
  ptxgen_memory_counters local_load;
  ptxgen_memory_counters local_store;
  ptxgen_shared_counters shared_load;
  ptxgen_shared_counters shared_store;
  uint64_t bulk_load_bytes;   ///< of bulk copies from global to shared memory
  uint64_t bulk_store_bytes;  ///< of bulk copies from shared to global memory
  double seconds;             ///< host time of the emulation
} ptxgen_counters;

/// Sums over the launches that have ended, of kernels loaded through this device, since the sums
/// were cleared. Synchronize before: a launch is counted before a call that waits for it returns.
PTXGEN_API ptxgen_status ptxgen_device_get_counters(const ptxgen_device* device,
                                                    ptxgen_counters* counters) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_device_clear_counters(ptxgen_device* device) PTXGEN_NOEXCEPT;

// ---- memory -------------------------------------------------------------------------------------

/// Device memory: a buffer of this library, or an allocation of the application in the device's
/// primary context. It must live until all work on it is done.
typedef struct ptxgen_span {
  uint64_t address;
  uint64_t bytes;
} ptxgen_span;

/// `bytes` of device memory, 256-byte aligned, not initialised. 0 bytes are allowed.
PTXGEN_API ptxgen_status ptxgen_buffer_create(ptxgen_device* device, uint64_t bytes,
                                              ptxgen_buffer** buffer) PTXGEN_NOEXCEPT;
PTXGEN_API void ptxgen_buffer_free(ptxgen_buffer* buffer) PTXGEN_NOEXCEPT;
/// Address and size; zeros for NULL.
PTXGEN_API ptxgen_span ptxgen_buffer_span(const ptxgen_buffer* buffer) PTXGEN_NOEXCEPT;

/// On the emulated device, where the bytes of the buffer are in this process, valid until it is
/// freed; NULL on a GPU, for 0 bytes and for NULL. All of the buffer counts as initialised from
/// then on, because writes of the host are not seen. Wait for the streams that use the buffer
/// before the host accesses the bytes.
PTXGEN_API void* ptxgen_buffer_host(ptxgen_buffer* buffer) PTXGEN_NOEXCEPT;

/// Copies and fills check bounds (code "out-of-bounds"). Without a stream (NULL) the call is
/// synchronous; with one the copy is queued, and the host memory must stay valid and unchanged
/// until the copy has run.
PTXGEN_API ptxgen_status ptxgen_buffer_write(ptxgen_buffer* buffer, uint64_t offset,
                                             const void* from, uint64_t bytes,
                                             const ptxgen_stream* stream) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_buffer_read(const ptxgen_buffer* buffer, uint64_t offset, void* to,
                                            uint64_t bytes,
                                            const ptxgen_stream* stream) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_buffer_copy(ptxgen_buffer* to, uint64_t to_offset,
                                            const ptxgen_buffer* from, uint64_t from_offset,
                                            uint64_t bytes,
                                            const ptxgen_stream* stream) PTXGEN_NOEXCEPT;
/// `count` elements of `element_bytes` (1, 2 or 4) from `offset` on, a multiple of `element_bytes`.
PTXGEN_API ptxgen_status ptxgen_buffer_fill(ptxgen_buffer* buffer, uint64_t offset, uint32_t value,
                                            uint32_t element_bytes, uint64_t count,
                                            const ptxgen_stream* stream) PTXGEN_NOEXCEPT;

// ---- streams, events, graphs --------------------------------------------------------------------

enum { PTXGEN_STREAM_NON_BLOCKING = 0, PTXGEN_STREAM_BLOCKING = 1 };

PTXGEN_API ptxgen_status ptxgen_stream_create(ptxgen_device* device, int32_t kind, int32_t priority,
                                              ptxgen_stream** stream) PTXGEN_NOEXCEPT;
/// A stream that the application owns (CUstream, cudaStream_t), or NULL for the default stream.
PTXGEN_API ptxgen_status ptxgen_stream_borrow(ptxgen_device* device, void* cuda_stream,
                                              ptxgen_stream** stream) PTXGEN_NOEXCEPT;
PTXGEN_API void ptxgen_stream_free(ptxgen_stream* stream) PTXGEN_NOEXCEPT;
/// The CUstream; NULL for the default stream and for NULL.
PTXGEN_API void* ptxgen_stream_cuda(const ptxgen_stream* stream) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_stream_synchronize(const ptxgen_stream* stream) PTXGEN_NOEXCEPT;
/// Whether all queued work is done.
PTXGEN_API ptxgen_status ptxgen_stream_done(const ptxgen_stream* stream,
                                            int32_t* done) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_stream_wait(const ptxgen_stream* stream,
                                            const ptxgen_event* event) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_stream_record(const ptxgen_stream* stream,
                                              const ptxgen_event* event) PTXGEN_NOEXCEPT;

PTXGEN_API ptxgen_status ptxgen_event_create(ptxgen_device* device, int32_t timing,
                                             ptxgen_event** event) PTXGEN_NOEXCEPT;
PTXGEN_API void ptxgen_event_free(ptxgen_event* event) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_event_synchronize(const ptxgen_event* event) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_event_done(const ptxgen_event* event,
                                           int32_t* done) PTXGEN_NOEXCEPT;
/// Time from `start` to `end`; host time on the emulated device.
PTXGEN_API ptxgen_status ptxgen_event_milliseconds(const ptxgen_event* start,
                                                   const ptxgen_event* end,
                                                   float* milliseconds) PTXGEN_NOEXCEPT;

enum { PTXGEN_CAPTURE_THREAD = 0, PTXGEN_CAPTURE_GLOBAL = 1, PTXGEN_CAPTURE_RELAXED = 2 };

/// Until ptxgen_stream_end_capture the stream's work is recorded instead of run. Kernels launched
/// meanwhile must be loaded before (ptxgen_prepare); otherwise the launch fails with the code
/// "capture-miss", and the capture stays valid.
PTXGEN_API ptxgen_status ptxgen_stream_begin_capture(const ptxgen_stream* stream,
                                                     int32_t mode) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_stream_end_capture(const ptxgen_stream* stream,
                                                   ptxgen_graph** graph) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_stream_capturing(const ptxgen_stream* stream,
                                                 int32_t* capturing) PTXGEN_NOEXCEPT;
/// Queues the captured work; may be repeated. Its buffers must still exist.
PTXGEN_API ptxgen_status ptxgen_graph_launch(const ptxgen_graph* graph,
                                             const ptxgen_stream* stream) PTXGEN_NOEXCEPT;
/// 0 for NULL.
PTXGEN_API size_t ptxgen_graph_nodes(const ptxgen_graph* graph) PTXGEN_NOEXCEPT;
PTXGEN_API void ptxgen_graph_free(ptxgen_graph* graph) PTXGEN_NOEXCEPT;

// ---- the library's kernels ----------------------------------------------------------------------

typedef struct ptxgen_kernel_info {
  size_t struct_bytes;
  const char* name;            ///< also the entry's name in the PTX
  const char* doc;             ///< what it computes
  const char* access_pattern;  ///< how consecutive lanes access memory
  size_t parameter_count;
  size_t operand_count;
} ptxgen_kernel_info;

/// An argument of a kernel, in the order of the PTX parameters.
typedef struct ptxgen_operand_info {
  size_t struct_bytes;
  const char* name;
  /// "input", "output", "in-out": device memory; "scalar": a number; "promise": a number other than
  /// 0. "workspace", "shape" and "tensor map" are not given by the caller.
  const char* role;
  const char* doc;
  int32_t optional;  ///< not 0: some shapes have no such operand
} ptxgen_operand_info;

/// A build-time parameter of a kernel: a shape or an option, always an unsigned number.
typedef struct ptxgen_parameter_info {
  size_t struct_bytes;
  const char* name;
  const char* type;
  const char* doc;
  uint64_t default_value;
  uint64_t min;
  uint64_t max;
  int32_t specializes;  ///< not 0: each value is a module of its own
} ptxgen_parameter_info;

typedef struct ptxgen_parameter {
  const char* name;
  uint64_t value;
} ptxgen_parameter;

/// Kernels are in alphabetical order; the texts live as long as the library.
PTXGEN_API size_t ptxgen_kernel_count(void) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_kernel_get_info(size_t kernel,
                                                ptxgen_kernel_info* info) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_kernel_get_parameter(size_t kernel, size_t parameter,
                                                     ptxgen_parameter_info* info) PTXGEN_NOEXCEPT;

/// The name of a value of a parameter, "bf16"; NULL if its values are numbers, or there is no such
/// kernel, parameter or value.
PTXGEN_API const char* ptxgen_kernel_value_name(size_t kernel, size_t parameter,
                                                uint64_t value) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_kernel_get_operand(size_t kernel, size_t operand,
                                                   ptxgen_operand_info* info) PTXGEN_NOEXCEPT;

// ---- programs: PTX that is not loaded yet -------------------------------------------------------

/// Builds a kernel of the library by name; omitted parameters have their defaults. One of `device`
/// and `target` ("sm_90") may be NULL.
PTXGEN_API ptxgen_status ptxgen_program_build(ptxgen_device* device, const char* target,
                                              const char* kernel,
                                              const ptxgen_parameter* parameters,
                                              size_t parameter_count,
                                              ptxgen_program** program) PTXGEN_NOEXCEPT;
/// Parses and verifies PTX text of any producer. `file` is its name in messages, or NULL.
PTXGEN_API ptxgen_status ptxgen_program_parse(const char* ptx, size_t bytes, const char* file,
                                              ptxgen_program** program) PTXGEN_NOEXCEPT;
/// Compiles CUDA C++ with NVRTC for the device's target. Declare kernels extern "C". `options` are
/// NVRTC's.
PTXGEN_API ptxgen_status ptxgen_program_compile_cuda(ptxgen_device* device, const char* source,
                                                     size_t bytes, const char* file,
                                                     const char* const* options,
                                                     size_t option_count,
                                                     ptxgen_program** program) PTXGEN_NOEXCEPT;
PTXGEN_API void ptxgen_program_free(ptxgen_program* program) PTXGEN_NOEXCEPT;

/// The program's PTX; "" for NULL. `bytes` may be NULL.
PTXGEN_API const char* ptxgen_program_ptx(const ptxgen_program* program,
                                          size_t* bytes) PTXGEN_NOEXCEPT;
/// The log of the compiler, or the report of the passes; "" if there is none.
PTXGEN_API const char* ptxgen_program_log(const ptxgen_program* program) PTXGEN_NOEXCEPT;
/// Its kernels; NULL for an index that is too large.
PTXGEN_API size_t ptxgen_program_entry_count(const ptxgen_program* program) PTXGEN_NOEXCEPT;
PTXGEN_API const char* ptxgen_program_entry(const ptxgen_program* program,
                                            size_t index) PTXGEN_NOEXCEPT;

typedef struct ptxgen_check_options {
  size_t struct_bytes;
  const char* target;  ///< "sm_90": checked for it instead of the text's own target, or NULL
  const char* entry;   ///< the kernel that must exist, or NULL
  /// Threads of a block in x, y, z, or zeros: with them a warning about some launch can become an
  /// error about this one.
  uint32_t block[3];
} ptxgen_check_options;

/// What the verifier, the gates and the analyzer find in PTX text of any producer, as the command
/// `ptxgen check` reports it. Text that cannot be parsed is a finding of the rule "syntax". `file`
/// is its name in messages, or NULL; `options` may be NULL. PTXGEN_ERROR_USAGE, "bad-target": there
/// is no such target.
PTXGEN_API ptxgen_status ptxgen_check(const char* ptx, size_t bytes, const char* file,
                                      const ptxgen_check_options* options,
                                      ptxgen_findings** findings) PTXGEN_NOEXCEPT;

typedef struct ptxgen_optimize_options {
  size_t struct_bytes;
  /// Passes and groups in the order in which they run, separated by commas; NULL: "default". The
  /// names are those of `ptxgen opt --list-passes`.
  const char* passes;
  int32_t no_contract;  ///< not 0: mul and add do not become fma
  /// Instructions that make a condition worth a loop split, if `set_split_threshold` is not 0: 0
  /// never, 1 always, at most 32767.
  int32_t set_split_threshold;
  uint32_t split_threshold;
} ptxgen_optimize_options;

/// Runs passes on a copy of the program. Its log is the report: a line for each pass and for each
/// of its decisions. `options` may be NULL. PTXGEN_ERROR_OPTIMIZE: "unknown-pass", or the rule of
/// the verifier that the result of a pass breaks.
PTXGEN_API ptxgen_status ptxgen_program_optimize(const ptxgen_program* program,
                                                 const ptxgen_optimize_options* options,
                                                 ptxgen_program** optimized) PTXGEN_NOEXCEPT;

/// One run of one pass.
typedef struct ptxgen_pass_info {
  size_t struct_bytes;
  const char* name;  ///< lives as long as the library
  int32_t changed;
  uint64_t fired;    ///< candidates that it changed
  uint64_t refused;  ///< candidates that it left as they were
  uint64_t statements_before;
  uint64_t statements_after;
  double microseconds;
} ptxgen_pass_info;

/// The passes of ptxgen_program_optimize in execution order; 0 for other programs and for NULL.
PTXGEN_API size_t ptxgen_program_pass_count(const ptxgen_program* program) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_program_get_pass(const ptxgen_program* program, size_t index,
                                                 ptxgen_pass_info* info) PTXGEN_NOEXCEPT;

/// How a kernel is launched.
typedef struct ptxgen_geometry {
  size_t struct_bytes;
  uint32_t grid[3];   ///< blocks; 0 counts as 1
  uint32_t block[3];  ///< threads; 0 counts as 1
  uint32_t dynamic_shared_bytes;
  uint32_t cluster[3];   ///< blocks; 0 counts as 1
  int32_t cooperative;   ///< all blocks run at the same time
  int32_t programmatic;  ///< may start before its predecessor ends; needs griddepcontrol.wait
} ptxgen_geometry;

/// Geometry of a program made by ptxgen_program_build.
PTXGEN_API ptxgen_status ptxgen_program_geometry(const ptxgen_program* program,
                                                 ptxgen_geometry* geometry) PTXGEN_NOEXCEPT;

/// Assembles the whole program with nvJitLink, ptxas or the driver. `target` as in
/// ptxgen_program_build; a device's settings say where to search for the tools.
PTXGEN_API ptxgen_status ptxgen_program_assemble(const ptxgen_program* program,
                                                 ptxgen_device* device, const char* target,
                                                 ptxgen_image** image) PTXGEN_NOEXCEPT;
typedef struct ptxgen_image_info {
  size_t struct_bytes;
  const void* data;  ///< the cubin; lives as long as the image
  size_t bytes;
  uint32_t registers;  ///< per thread, of the kernel that uses most
  uint64_t spill_stores;
  uint64_t spill_loads;
  uint64_t shared;  ///< static, per block, of the kernel that uses most
  const char* tool;
  const char* log;
} ptxgen_image_info;
PTXGEN_API ptxgen_status ptxgen_image_get_info(const ptxgen_image* image,
                                               ptxgen_image_info* info) PTXGEN_NOEXCEPT;
PTXGEN_API void ptxgen_image_free(ptxgen_image* image) PTXGEN_NOEXCEPT;

typedef struct ptxgen_assemble_options {
  size_t struct_bytes;
  const char* target;  ///< as of ptxgen_program_assemble
  /// "nvjitlink", "ptxas" or "driver"; "fewest": nvJitLink and ptxas, and the image of the one that
  /// uses the fewest registers; NULL: the first tool that is found.
  const char* tool;
  int32_t set_optimization;
  uint32_t optimization;   ///< 0 to 3, if `set_optimization` is not 0; otherwise 3
  uint32_t max_registers;  ///< of a thread; 0: no limit
  int32_t line_info;       ///< not 0: the `.loc` lines are kept for profilers
} ptxgen_assemble_options;

/// ptxgen_program_assemble with a choice of the tool. PTXGEN_ERROR_ASSEMBLE: "no-assembler" (the
/// message says what to install, the log lists the places searched), "rejected", "unknown-target".
PTXGEN_API ptxgen_status ptxgen_program_assemble_with(const ptxgen_program* program,
                                                      ptxgen_device* device,
                                                      const ptxgen_assemble_options* options,
                                                      ptxgen_image** image) PTXGEN_NOEXCEPT;

/// Resources of one kernel of an image, in bytes unless stated otherwise.
typedef struct ptxgen_kernel_resources {
  size_t struct_bytes;
  const char* name;         ///< lives as long as the image
  uint32_t registers;       ///< 32-bit registers of a thread
  uint32_t barriers;        ///< named barriers
  uint64_t spill_stores;    ///< of a thread
  uint64_t spill_loads;     ///< of a thread
  uint64_t stack;           ///< local memory of a thread
  uint64_t shared;          ///< static shared memory of a block
  uint64_t constant_bytes;  ///< constant banks; bank 0 holds the parameters
} ptxgen_kernel_resources;

/// The kernels of an image by name; 0 for NULL.
PTXGEN_API size_t ptxgen_image_kernel_count(const ptxgen_image* image) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_image_get_kernel(
    const ptxgen_image* image, size_t index, ptxgen_kernel_resources* resources) PTXGEN_NOEXCEPT;

// ---- modules and functions ----------------------------------------------------------------------

/// Loads all of a program: its kernels share their global variables. Not cached.
PTXGEN_API ptxgen_status ptxgen_module_load(ptxgen_device* device, const ptxgen_program* program,
                                            ptxgen_module** module) PTXGEN_NOEXCEPT;
/// Loads a cubin, or another image that the driver accepts; arguments of its functions are not
/// checked.
PTXGEN_API ptxgen_status ptxgen_module_load_image(ptxgen_device* device, const void* image,
                                                  size_t bytes,
                                                  ptxgen_module** module) PTXGEN_NOEXCEPT;
PTXGEN_API void ptxgen_module_free(ptxgen_module* module) PTXGEN_NOEXCEPT;
/// Keeps the module loaded. Fails with the code "not-found".
PTXGEN_API ptxgen_status ptxgen_module_function(const ptxgen_module* module, const char* name,
                                                ptxgen_function** function) PTXGEN_NOEXCEPT;
/// Address and size of a .global or .const variable.
PTXGEN_API ptxgen_status ptxgen_module_variable(const ptxgen_module* module, const char* name,
                                                ptxgen_span* variable) PTXGEN_NOEXCEPT;
/// The log of the driver's compiler; "" for NULL.
PTXGEN_API const char* ptxgen_module_log(const ptxgen_module* module) PTXGEN_NOEXCEPT;

/// Loads one kernel of a program through gates and module cache: the same text is compiled once.
/// `entry` may be NULL if the program has one kernel.
PTXGEN_API ptxgen_status ptxgen_function_load(ptxgen_device* device, const ptxgen_program* program,
                                              const char* entry,
                                              ptxgen_function** function) PTXGEN_NOEXCEPT;
PTXGEN_API void ptxgen_function_free(ptxgen_function* function) PTXGEN_NOEXCEPT;

typedef struct ptxgen_function_info {
  size_t struct_bytes;
  const char* name;
  uint32_t registers;      ///< per thread; on the emulator the declared ones
  uint32_t local;          ///< per thread: stack and spills
  uint32_t static_shared;  ///< per block
  uint32_t constant;
  uint32_t max_threads;     ///< maximum of a block
  uint32_t ptx_version;     ///< 10 * major + minor
  uint32_t binary_version;  ///< 90: sm_90
  /// Known for functions of programs, not of images.
  int32_t signature_known;
  uint32_t argument_count;
  uint32_t argument_bytes;
} ptxgen_function_info;
PTXGEN_API ptxgen_status ptxgen_function_get_info(const ptxgen_function* function,
                                                  ptxgen_function_info* info) PTXGEN_NOEXCEPT;
/// Resident blocks of `threads` threads per multiprocessor.
PTXGEN_API ptxgen_status ptxgen_function_occupancy(const ptxgen_function* function,
                                                   uint32_t threads, uint32_t dynamic_shared_bytes,
                                                   uint32_t* blocks) PTXGEN_NOEXCEPT;

typedef int32_t ptxgen_type;
enum {
  PTXGEN_ANY = 0,  ///< only the size is checked
  PTXGEN_INTEGER = 1,
  PTXGEN_FLOAT = 2,
  PTXGEN_POINTER = 3  ///< 8 bytes, an address of device memory
};

/// A declared parameter of a kernel.
typedef struct ptxgen_argument_info {
  size_t struct_bytes;
  const char* name;  ///< lives as long as the function
  const char* type;  ///< as declared: "u64", "f32", "b16"; "" for a structure
  uint32_t bytes;
  uint32_t offset;  ///< in the block of ptxgen_function_launch_packed
  int32_t pointer;  ///< not 0: declared as `.ptr`; an address may be declared without it
} ptxgen_argument_info;
/// The parameter of that index, below ptxgen_function_info.argument_count.
PTXGEN_API ptxgen_status ptxgen_function_get_argument(const ptxgen_function* function, size_t index,
                                                      ptxgen_argument_info* info) PTXGEN_NOEXCEPT;

/// One argument of a launch: address, size and kind of its value.
typedef struct ptxgen_argument {
  const void* value;
  uint32_t bytes;
  ptxgen_type type;
} ptxgen_argument;

/// Queues a launch with one argument for each parameter. Number, sizes and kinds are checked
/// against the signature (code "arguments", naming the parameter), the geometry against device and
/// function (code "launch-limits"). The values are copied before the call returns.
PTXGEN_API ptxgen_status ptxgen_function_launch(const ptxgen_function* function,
                                                const ptxgen_geometry* geometry,
                                                const ptxgen_argument* arguments, size_t count,
                                                const ptxgen_stream* stream) PTXGEN_NOEXCEPT;
/// The same with the parameters as one block in the layout of the PTX.
PTXGEN_API ptxgen_status ptxgen_function_launch_packed(const ptxgen_function* function,
                                                       const ptxgen_geometry* geometry,
                                                       const void* block, size_t bytes,
                                                       const ptxgen_stream* stream) PTXGEN_NOEXCEPT;

// ---- a launch on host memory --------------------------------------------------------------------

/// Runs the only kernel of PTX text on the emulator, on memory of this process, and waits for it:
/// the function that mock GPUs load from libgpuocelot. `args` are the values themselves: a host
/// address for a pointer, a number for any other parameter of up to 8 bytes. `lx`, `ly`, `lz` are
/// threads of the block, `gx`, `gy`, `gz` blocks of the grid, `smem` dynamic shared bytes.
///
/// Sizes of allocations are not known here: memory around each address is copied to the emulated
/// device, and bytes that the kernel changed are copied back, none after a fault. 8-byte parameters
/// that are readable addresses are taken as pointers; addresses in memory are not followed.
/// Findings are logged as those of devices; ptxgen_last_error(NULL) has the error of the last call
/// that failed or had a finding of severity error.
PTXGEN_API void ptx_run(const char* ptx, int nargs, void* const* args, int lx, int ly, int lz,
                        int gx, int gy, int gz, int smem) PTXGEN_NOEXCEPT;

// ---- launching the library's kernels ------------------------------------------------------------

/// Description of a launch.
typedef struct ptxgen_launch_record {
  size_t struct_bytes;
  char kernel[64];          ///< "gemv"
  char implementation[32];  ///< "direct", "coalesced", "cublas", ..., or empty
  char reason[192];         ///< reason for the choice
  ptxgen_geometry geometry;
  uint32_t launches;
  int32_t cached;  ///< the kernel was in memory already
  /// The launch's number, for findings; of several launches, the last one's. 0 on a GPU and in a
  /// capture.
  uint64_t launch;
} ptxgen_launch_record;

/// All functions check sizes, alignment and overlap of their arguments before they queue anything
/// (codes "buffer-size", "null-pointer", "misaligned", "aliasing"). `record` may be NULL.
/// y[j] = sum over i of a[i*n + j] * x[i]; a is k x n f32, row-major, x has k elements, y n.
PTXGEN_API ptxgen_status ptxgen_gemv(ptxgen_device* device, ptxgen_span y, ptxgen_span a,
                                     ptxgen_span x, uint32_t k, uint32_t n,
                                     const ptxgen_stream* stream,
                                     ptxgen_launch_record* record) PTXGEN_NOEXCEPT;

/// Element types and matrix layouts.
enum { PTXGEN_F32 = 0, PTXGEN_F16 = 1, PTXGEN_BF16 = 2 };
enum {
  PTXGEN_GEMV_T = 0,  ///< A[k x n] row-major: y[j] = sum over i of A[i * lda + j] * x[i]
  PTXGEN_GEMV_R = 1   ///< W[n x k] row-major: y[j] = sum over i of W[j * lda + i] * x[i]
};

/// y = alpha * sum + beta * y + bias + residual, each term optional; sums are f32.
typedef struct ptxgen_gemv_problem {
  size_t struct_bytes;
  uint32_t k;        ///< elements of x
  uint32_t n;        ///< elements of y, bias and residual
  int32_t layout;    ///< PTXGEN_GEMV_...
  int32_t weights;   ///< PTXGEN_F32, ...
  int32_t x;         ///< PTXGEN_F32, or the weights' type
  int32_t y;         ///< of y, bias and residual: the same
  uint64_t lda;      ///< elements from row to row; 0: the row length
  int32_t scaled;    ///< not 0: alpha and beta are used; otherwise 1 and 0
  int32_t bias;      ///< not 0: n elements are added
  int32_t residual;  ///< not 0: n elements are added; may be y itself
} ptxgen_gemv_problem;

/// Leave operands that the problem does not have zero.
typedef struct ptxgen_gemv_operands {
  size_t struct_bytes;
  ptxgen_span y;
  ptxgen_span a;
  ptxgen_span x;
  ptxgen_span bias;
  ptxgen_span residual;
  float alpha;
  float beta;
  int32_t constant_weights;  ///< not 0: no earlier work of the stream writes `a`
} ptxgen_gemv_operands;

/// Any GEMV; ptxgen_gemv is the case of layout T, f32 and the plain product.
PTXGEN_API ptxgen_status ptxgen_gemv_any(ptxgen_device* device, const ptxgen_gemv_problem* problem,
                                         const ptxgen_gemv_operands* operands,
                                         const ptxgen_stream* stream,
                                         ptxgen_launch_record* record) PTXGEN_NOEXCEPT;

typedef struct ptxgen_matmul_shape {
  uint32_t m;  ///< rows of c and a
  uint32_t k;  ///< columns of a, rows of b
  uint32_t n;  ///< columns of c and b
} ptxgen_matmul_shape;

/// c[m x n] = a[m x k] b[k x n], all f32, row-major.
PTXGEN_API ptxgen_status ptxgen_matmul(ptxgen_device* device, ptxgen_span c, ptxgen_span a,
                                       ptxgen_span b, ptxgen_matmul_shape shape,
                                       const ptxgen_stream* stream,
                                       ptxgen_launch_record* record) PTXGEN_NOEXCEPT;

/// An operand of a launch by name: memory for one in device memory, a number for a scalar; a
/// promise is given by a number other than 0.
typedef struct ptxgen_operand {
  const char* name;
  ptxgen_span memory;
  double number;
} ptxgen_operand;

/// Launches any kernel of the catalog: "vadd" with the parameter n and the operands c, a, b.
/// Omitted parameters have their defaults, omitted operands are empty. ptxgen_kernel_get_operand
/// describes the operands; a workspace comes from the library. Codes as above, and "no-kernel",
/// "bad-parameter", "arguments" for a name that is no operand.
PTXGEN_API ptxgen_status ptxgen_launch(ptxgen_device* device, const char* kernel,
                                       const ptxgen_parameter* parameters, size_t parameter_count,
                                       const ptxgen_operand* operands, size_t operand_count,
                                       const ptxgen_stream* stream,
                                       ptxgen_launch_record* record) PTXGEN_NOEXCEPT;

/// A launch that is checked once and then repeated without lock, lookup or allocation.
PTXGEN_API ptxgen_status ptxgen_plan_gemv(ptxgen_device* device, ptxgen_span y, ptxgen_span a,
                                          ptxgen_span x, uint32_t k, uint32_t n,
                                          const ptxgen_stream* stream,
                                          ptxgen_plan** plan) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_plan_gemv_any(ptxgen_device* device,
                                              const ptxgen_gemv_problem* problem,
                                              const ptxgen_gemv_operands* operands,
                                              const ptxgen_stream* stream,
                                              ptxgen_plan** plan) PTXGEN_NOEXCEPT;
/// The same as ptxgen_launch.
PTXGEN_API ptxgen_status ptxgen_plan_create(ptxgen_device* device, const char* kernel,
                                            const ptxgen_parameter* parameters,
                                            size_t parameter_count, const ptxgen_operand* operands,
                                            size_t operand_count, const ptxgen_stream* stream,
                                            ptxgen_plan** plan) PTXGEN_NOEXCEPT;
/// On the plan's stream, or on another of the same device. The plan keeps its own stream.
PTXGEN_API ptxgen_status ptxgen_plan_launch(const ptxgen_plan* plan,
                                            const ptxgen_stream* stream) PTXGEN_NOEXCEPT;
PTXGEN_API ptxgen_status ptxgen_plan_record(const ptxgen_plan* plan,
                                            ptxgen_launch_record* record) PTXGEN_NOEXCEPT;
PTXGEN_API void ptxgen_plan_free(ptxgen_plan* plan) PTXGEN_NOEXCEPT;

// ---- cache --------------------------------------------------------------------------------------

/// A kernel to load. "gemv" with k, n, layout and dtype is the kernel that ptxgen_gemv and
/// ptxgen_gemv_any use for that shape with tight rows, x and y f32, and 16-byte alignment.
typedef struct ptxgen_kernel_request {
  const char* kernel;
  const ptxgen_parameter* parameters;
  size_t parameter_count;
} ptxgen_kernel_request;

/// Called after each kernel, from one thread at a time.
typedef void (*ptxgen_progress_callback)(void* user, size_t done, size_t total);

/// Builds and loads kernels ahead of time, in parallel; launches nothing.
PTXGEN_API ptxgen_status ptxgen_prepare(ptxgen_device* device,
                                        const ptxgen_kernel_request* requests, size_t count,
                                        ptxgen_progress_callback callback,
                                        void* user) PTXGEN_NOEXCEPT;

/// Counted since the device was opened.
typedef struct ptxgen_cache_statistics {
  size_t struct_bytes;
  uint64_t hits;      ///< found in memory
  uint64_t misses;    ///< loaded by the calling thread
  uint64_t waits;     ///< waited for another thread to load it
  uint64_t compiles;  ///< misses that neither memory nor disk served
  uint64_t disk_hits;
  uint64_t failures;  ///< misses that ended in an error
  uint64_t evictions;
  uint64_t modules;                 ///< in memory now
  uint64_t compiles_since_prepare;  ///< 0: ptxgen_prepare covered every launch
  uint64_t misses_since_prepare;
} ptxgen_cache_statistics;

PTXGEN_API ptxgen_status ptxgen_cache_get_statistics(
    const ptxgen_device* device, ptxgen_cache_statistics* statistics) PTXGEN_NOEXCEPT;
/// Empties the memory layer; modules in use stay loaded until they are released.
PTXGEN_API ptxgen_status ptxgen_cache_clear(ptxgen_device* device) PTXGEN_NOEXCEPT;
/// The folder of the disk layer; "" for none and for NULL.
PTXGEN_API const char* ptxgen_cache_folder(const ptxgen_device* device) PTXGEN_NOEXCEPT;

typedef struct ptxgen_stage_time {
  const char* stage;  ///< "build", "gates", "print", "disk", "assemble", "load"; never freed
  double microseconds;
} ptxgen_stage_time;

/// The stages of the kernel's last miss, in order: writes their number and the first `capacity`.
PTXGEN_API ptxgen_status ptxgen_stages(const ptxgen_device* device, const char* kernel,
                                       ptxgen_stage_time* stages, size_t capacity,
                                       size_t* count) PTXGEN_NOEXCEPT;

// ---- models -------------------------------------------------------------------------------------

/// Decoders in GGUF files: llama, qwen2, qwen3, gemma3. A model's weights are on a device once;
/// sessions share them.
typedef struct ptxgen_model ptxgen_model;
typedef struct ptxgen_session ptxgen_session;

typedef struct ptxgen_model_info {
  size_t struct_bytes;
  const char* name;          ///< as the file has it; may be empty
  const char* architecture;  ///< "llama"
  uint32_t layers;
  uint32_t width;  ///< elements of the residual stream
  uint32_t heads;
  uint32_t kv_heads;
  uint32_t head_size;
  uint32_t vocabulary;       ///< tokens; ids are below it
  uint32_t context;          ///< positions that the model was made for
  int32_t tokenizer;         ///< not 0: ptxgen_model_tokenize works
  uint64_t device_bytes;     ///< of the weights
  uint64_t bytes_per_token;  ///< of weights that one token reads
} ptxgen_model_info;

/// Called from time to time by the thread of ptxgen_model_open. Must not throw.
typedef void (*ptxgen_load_callback)(void* user, uint64_t bytes, uint64_t total);

/// Copies the weights of a file to the device. `callback` may be NULL. Files that cannot be read or
/// run: PTXGEN_ERROR_IO with the file's name and a code, "unsupported-architecture",
/// "missing-tensor" and the like.
PTXGEN_API ptxgen_status ptxgen_model_open(ptxgen_device* device, const char* path,
                                           ptxgen_load_callback callback, void* user,
                                           ptxgen_model** model) PTXGEN_NOEXCEPT;
PTXGEN_API void ptxgen_model_free(ptxgen_model* model) PTXGEN_NOEXCEPT;
/// Texts live as long as the model.
PTXGEN_API ptxgen_status ptxgen_model_get_info(const ptxgen_model* model,
                                               ptxgen_model_info* info) PTXGEN_NOEXCEPT;

enum {
  PTXGEN_TOKENIZE_PLAIN = 1,  ///< no token before or after the text, even where the file has one
  PTXGEN_TOKENIZE_TEXT = 2    ///< the text of a control token is text
};
/// The tokens of `bytes` of UTF-8: writes their number and the first `capacity` of them. `tokens`
/// may be NULL if `capacity` is 0. `flags`: 0 or PTXGEN_TOKENIZE_.... A tokenizer that is not
/// supported: PTXGEN_ERROR_IO, "unsupported-tokenizer".
PTXGEN_API ptxgen_status ptxgen_model_tokenize(const ptxgen_model* model, const char* text,
                                               size_t bytes, uint32_t flags, uint32_t* tokens,
                                               size_t capacity, size_t* count) PTXGEN_NOEXCEPT;
/// The bytes of tokens, without control tokens: writes their number and the first `capacity` of
/// them, without a final 0. They may begin or end within a character.
PTXGEN_API ptxgen_status ptxgen_model_detokenize(const ptxgen_model* model, const uint32_t* tokens,
                                                 size_t count, char* text, size_t capacity,
                                                 size_t* bytes) PTXGEN_NOEXCEPT;
/// Whether a text ends with the token. Without a tokenizer: the file's end of text.
PTXGEN_API ptxgen_status ptxgen_model_is_end(const ptxgen_model* model, uint32_t token,
                                             int32_t* is_end) PTXGEN_NOEXCEPT;

typedef struct ptxgen_chat_message {
  const char* role;  ///< "system", "user", "assistant"
  const char* content;
} ptxgen_chat_message;
/// The text of a conversation in the form of the model's chat template, up to the begin of the
/// assistant's next message; to be tokenised with the flags 0. Writes the number of its bytes and
/// the first `capacity` of them, without a final 0. Another template than ChatML or Gemma's:
/// PTXGEN_ERROR_IO, "unsupported-chat-template".
PTXGEN_API ptxgen_status ptxgen_model_chat(const ptxgen_model* model,
                                           const ptxgen_chat_message* messages, size_t count,
                                           char* text, size_t capacity,
                                           size_t* bytes) PTXGEN_NOEXCEPT;

enum { PTXGEN_PREFILL_F32 = 0, PTXGEN_PREFILL_F16 = 1, PTXGEN_PREFILL_BF16 = 2 };
enum { PTXGEN_CACHE_F32 = 0, PTXGEN_CACHE_F16 = 1, PTXGEN_CACHE_BF16 = 2, PTXGEN_CACHE_Q8_0 = 3 };

typedef struct ptxgen_session_options {
  size_t struct_bytes;
  uint32_t context;       ///< positions of each sequence; 0: the model's, at most 4096
  int32_t cache;          ///< type of keys and values: PTXGEN_CACHE_...
  uint32_t sequences;     ///< decoded side by side, at most 64; 0: 1
  uint32_t prefill_rows;  ///< tokens of a prompt computed together, at most 1024; 0: 512
  int32_t no_graph;       ///< not 0: decode launches kernel by kernel
  /// How long prompts are multiplied: PTXGEN_PREFILL_F32 exactly; f16 and bf16 on tensor cores, and
  /// an activation that the type does not have is the error "activation-overflow".
  int32_t prefill_type;
} ptxgen_session_options;

/// Sequences of tokens over a model, with their keys and values. `options` may be NULL. Calls that
/// fail because of an argument change nothing: "context-full", "bad-token", "bad-sequence",
/// "arguments", "no-logits". Sequences are numbered from 0.
PTXGEN_API ptxgen_status ptxgen_session_create(const ptxgen_model* model,
                                               const ptxgen_session_options* options,
                                               ptxgen_session** session) PTXGEN_NOEXCEPT;
PTXGEN_API void ptxgen_session_free(ptxgen_session* session) PTXGEN_NOEXCEPT;
/// Appends tokens, at least one, to a sequence.
PTXGEN_API ptxgen_status ptxgen_session_prefill(ptxgen_session* session, uint32_t sequence,
                                                const uint32_t* tokens,
                                                size_t count) PTXGEN_NOEXCEPT;
/// Appends one token to each sequence; `count` is the number of sequences.
PTXGEN_API ptxgen_status ptxgen_session_decode(ptxgen_session* session, const uint32_t* tokens,
                                               size_t count) PTXGEN_NOEXCEPT;
/// The logits after the last token of a sequence: writes their number, the vocabulary, and the
/// first `capacity` of them.
PTXGEN_API ptxgen_status ptxgen_session_logits(ptxgen_session* session, uint32_t sequence,
                                               float* logits, size_t capacity,
                                               size_t* count) PTXGEN_NOEXCEPT;
/// The token with the largest logit, the lowest of equal ones.
PTXGEN_API ptxgen_status ptxgen_session_greedy(const ptxgen_session* session, uint32_t sequence,
                                               uint32_t* token) PTXGEN_NOEXCEPT;
/// Tokens that a sequence holds.
PTXGEN_API ptxgen_status ptxgen_session_position(const ptxgen_session* session, uint32_t sequence,
                                                 uint32_t* position) PTXGEN_NOEXCEPT;
/// Forgets the tokens of a sequence from `position` on.
PTXGEN_API ptxgen_status ptxgen_session_truncate(ptxgen_session* session, uint32_t sequence,
                                                 uint32_t position) PTXGEN_NOEXCEPT;
/// Positions, keys and values of all sequences, for ptxgen_session_restore on a session of the same
/// model, cache type and number of sequences, in any process: writes the number of bytes and the
/// first `capacity` of them. Each call copies from the device. Logits are not part of it.
PTXGEN_API ptxgen_status ptxgen_session_save(const ptxgen_session* session, void* saved,
                                             size_t capacity, size_t* bytes) PTXGEN_NOEXCEPT;
/// Replaces the tokens of all sequences. Bytes that are not those of such a session, or longer than
/// this one's context: PTXGEN_ERROR_IO, "bad-session", and nothing is changed.
PTXGEN_API ptxgen_status ptxgen_session_restore(ptxgen_session* session, const void* saved,
                                                size_t bytes) PTXGEN_NOEXCEPT;

#define PTXGEN_NO_LAYER 0xffffffffu
/// A tensor that a token or a chunk of a prompt produced. The names and their columns are those of
/// model::LayerTensor (docs/generate.md): "embedding", of each layer "attn_norm", "q", "k", "v",
/// "q_rope", "attn", "attn_out", "ffn_norm", "ffn_gate" and "ffn_out", then "output_norm",
/// "logits".
typedef struct ptxgen_layer_tensor {
  size_t struct_bytes;
  uint32_t layer;  ///< PTXGEN_NO_LAYER: of none
  uint32_t rows;   ///< of the prompt's chunk, or the sequences
  uint32_t columns;
  uint32_t position;    ///< of the first row, in the prompt's sequence
  const char* name;     ///< name and values are valid during the call
  const float* values;  ///< [rows][columns]
} ptxgen_layer_tensor;
/// Must not throw, and of the session's functions it may call those that change nothing.
typedef void (*ptxgen_layer_callback)(void* user, const ptxgen_layer_tensor* tensor);
/// Calls back for every tensor of later prefills and decodes; NULL ends it. Meanwhile nothing is
/// captured and every launch is waited for.
PTXGEN_API ptxgen_status ptxgen_session_observe(ptxgen_session* session,
                                                ptxgen_layer_callback callback,
                                                void* user) PTXGEN_NOEXCEPT;

/// How a token is drawn: top-k, top-p, min-p, temperature, in this order.
typedef struct ptxgen_generate_options {
  size_t struct_bytes;
  uint32_t max_tokens;  ///< 0: 128
  int32_t greedy;       ///< not 0: always the most likely token; the next four do not count
  float temperature;    ///< divides the logits; 0: 0.8
  uint32_t top_k;       ///< most likely tokens that are kept; 0: 40
  float top_p;          ///< probability of the tokens that are kept, at most 1; 0: 0.95
  float min_p;          ///< of the largest probability; 0: 0.05, negative: all are kept
  uint64_t seed;        ///< equal seeds draw equal tokens
  int32_t ignore_end;   ///< not 0: go on after a token that ends a text
} ptxgen_generate_options;

enum {
  PTXGEN_STOP_LENGTH = 0,   ///< max_tokens
  PTXGEN_STOP_TOKEN = 1,    ///< a token that ends a text; it is not given to the callback
  PTXGEN_STOP_CONTEXT = 2,  ///< the sequence is as long as the context
  PTXGEN_STOP_CALLER = 3    ///< the callback returned 0
};

/// Receives each token before the next one is computed; returns not 0 to continue. It must not
/// throw, and of the session's functions it may call those that change nothing.
typedef int32_t (*ptxgen_token_callback)(void* user, uint32_t token);

/// Appends a prompt to the only sequence and continues it. Without tokens (`count` 0) it continues
/// the last logits. `options`, `callback` and `reason` (PTXGEN_STOP_...) may be NULL.
PTXGEN_API ptxgen_status ptxgen_session_generate(ptxgen_session* session, const uint32_t* prompt,
                                                 size_t count,
                                                 const ptxgen_generate_options* options,
                                                 ptxgen_token_callback callback, void* user,
                                                 int32_t* reason) PTXGEN_NOEXCEPT;

#if defined(__cplusplus)
}  // extern "C"
#endif

#endif  // PTXGEN_PTXGEN_H
