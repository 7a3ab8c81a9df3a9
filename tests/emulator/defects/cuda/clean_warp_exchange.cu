// tests/emulator/defects/cuda/clean_warp_exchange.cu - lanes exchange values around __syncwarp
// run: grid=1 block=32 args="zero:4096"
// expect: clean shared-race
extern "C" __global__ void kernel(unsigned* out) {
  __shared__ unsigned tile[32];
  tile[threadIdx.x] = threadIdx.x * 3;
  __syncwarp();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}
