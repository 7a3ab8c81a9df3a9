// src/driver/cudart/streams.cpp - streams, their captures, events, host functions
#include <memory>

#include "driver/cudart/cudart.hpp"

namespace ptxgen::inline v0::driver::cudart {
namespace {

struct Callback {
  cudaStreamCallback_t function;
  void* user;
};

void run_callback(CUstream stream, CUresult status, void* user) {
  const std::unique_ptr<Callback> callback(static_cast<Callback*>(user));
  callback->function(stream, error_of(status), callback->user);
}

}  // namespace

namespace entries {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return driver_call(cuStreamCreate, stream, static_cast<unsigned>(CU_STREAM_DEFAULT));
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return driver_call(cuStreamCreate, stream, flags);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return driver_call(cuStreamCreateWithPriority, stream, flags, priority);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return driver_call(cuStreamDestroy_v2, stream);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return driver_call(cuStreamSynchronize, stream);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return driver_call(cuStreamQuery, stream); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return driver_call(cuStreamWaitEvent, stream, event, flags);
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* user,
                                  unsigned flags) {
  if (callback == nullptr) return cudaErrorInvalidValue;
  auto wrapped = std::make_unique<Callback>(Callback{callback, user});
  const cudaError_t error = driver_call(cuStreamAddCallback, stream, &run_callback,
                                        static_cast<void*>(wrapped.get()), flags);
  if (error == cudaSuccess) static_cast<void>(wrapped.release());
  return error;
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return driver_call(cuStreamGetPriority, stream, priority);
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return driver_call(cuStreamGetFlags, stream, flags);
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return driver_call(cuStreamGetDevice, stream, device);
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return driver_call(cuStreamGetId, stream, id);
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* memory, std::size_t bytes,
                                     unsigned flags) {
  return driver_call(cuStreamAttachMemAsync, stream, address_of(memory), bytes, flags);
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, CUstreamCaptureMode mode) {
  return driver_call(cuStreamBeginCapture_v2, stream, mode);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return driver_call(cuStreamEndCapture, stream, graph);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, CUstreamCaptureStatus* status) {
  return driver_call(cuStreamIsCapturing, stream, status);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return driver_call(cuThreadExchangeStreamCaptureMode, mode);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t work, void* user) {
  return driver_call(cuLaunchHostFunc, stream, work, user);
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return driver_call(cuEventCreate, event, static_cast<unsigned>(CU_EVENT_DEFAULT));
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return driver_call(cuEventCreate, event, flags);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return driver_call(cuEventDestroy_v2, event); }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return driver_call(cuEventRecord, event, stream);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return driver_call(cuEventRecordWithFlags, event, stream, flags);
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return driver_call(cuEventQuery, event); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return driver_call(cuEventSynchronize, event);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return driver_call(cuEventElapsedTime, milliseconds, start, end);
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::cudart
