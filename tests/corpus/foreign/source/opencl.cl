// tests/corpus/foreign/source/opencl.cl - OpenCL C kernels for ../llvm_opencl.ptx
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__constant float table_of_weights[4] = {0.5f, 1.0f, -2.0f, 1e-10f};
__attribute__((noinline)) float helper(__global const float *p, int i) { return p[i] * table_of_weights[i & 3]; }
__attribute__((noinline)) int4 quad(int x) { return (int4)(x, x * 2, x ^ 3, -x); }
__kernel void axpy(__global float *y, __global const float *x, float a, int n)
{
    __local float tile[64];
    int i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
    tile[i & 63] = x[i];
    __syncthreads();
    if (i < n) y[i] = a * tile[63 - (i & 63)] + helper(x, i) + (float)quad(i).z;
}
__kernel __attribute__((reqd_work_group_size(64, 2, 1))) void spin(__global volatile int *flags, __global double *d, uchar c, ushort4 v, __local int *scratch)
{
    for (int i = 0; i < v.x; ++i) { if (flags[i] == c) { scratch[i] = v.w; } else d[i] = d[i] / 3.0 + (double)c; }
    switch (v.z) { case 0: flags[0] = 1; break; case 1: flags[1] = 3; break; case 2: flags[7]=4; break; case 3: flags[9]=2; break; case 4: d[4]=1.5; break; default: flags[3] = scratch[2]; }
}
