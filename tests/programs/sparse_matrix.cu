// tests/programs/sparse_matrix.cu - a sparse matrix by a vector, warps for rows
#include <vector>

#include "check.cuh"

__global__ void multiply(int rows, const int* starts, const int* columns, const double* values,
                         const double* x, double* y) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  double sum = 0;
  for (int i = starts[row] + lane; i < starts[row + 1]; i += 32) sum += values[i] * x[columns[i]];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
  if (lane == 0) y[row] = sum;
}

template <class T>
T* upload(const std::vector<T>& host) {
  T* device;
  CUDA(cudaMalloc(&device, host.size() * sizeof(T)));
  CUDA(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyDefault));
  return device;
}

int main() {
  const int rows = 50, n = 200;
  std::vector<int> starts{0}, columns;
  std::vector<double> values, x(n), y(rows), expected(rows);
  for (int i = 0; i < n; ++i) x[i] = i % 11 - 4;
  for (int row = 0; row < rows; ++row) {
    for (int column = row % 5; column < n; column += 1 + row % 7) {
      columns.push_back(column);
      values.push_back(row + column % 3);
      expected[row] += values.back() * x[column];
    }
    starts.push_back(columns.size());
  }
  double* dy;
  CUDA(cudaMalloc(&dy, rows * sizeof(double)));
  multiply<<<(rows * 32 + 127) / 128, 128>>>(rows, upload(starts), upload(columns), upload(values),
                                             upload(x), dy);
  CUDA(cudaMemcpy(y.data(), dy, rows * sizeof(double), cudaMemcpyDefault));
  CHECK(y == expected);
  std::puts("ok");
}
