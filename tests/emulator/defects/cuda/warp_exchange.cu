// tests/emulator/defects/cuda/warp_exchange.cu - lanes exchange values without __syncwarp
// run: grid=1 block=32 args="zero:4096"
// expect: shared-race
// allow: uninitialized-read
extern "C" __global__ void kernel(unsigned* out) {
  __shared__ unsigned tile[32];
  tile[threadIdx.x] = threadIdx.x * 3;        // <- shared-race
  out[threadIdx.x] = tile[31 - threadIdx.x];  // <- shared-race
}
