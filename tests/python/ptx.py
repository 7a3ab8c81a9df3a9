# tests/python/ptx.py - PTX that the tests of the package share
"""Kernels by what is right or wrong about them."""

SCALE = """.version 7.0
.target sm_75
.address_size 64
.visible .entry scale(.param .u64 .ptr .global .align 4 y, .param .f32 factor, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [y];
  ld.param.f32 %f1, [factor];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.f32 %f2, [%rd3];
  mul.rn.f32 %f3, %f2, %f1;
  st.global.f32 [%rd3], %f3;
DONE:
  ret;
}
"""

# All threads store to one shared word and read it: a race, and no fault.
RACE = """.version 7.0
.target sm_75
.address_size 64
.visible .entry race(.param .u64 .ptr .global .align 4 out)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  .shared .align 4 .b8 tile[4];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  st.shared.u32 [tile], %r1;
  ld.shared.u32 %r2, [tile];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r2;
  ret;
}
"""

# One parameter of each kind; each is stored as it came.
KINDS = """.version 7.8
.target sm_80
.address_size 64
.visible .entry kinds(.param .u64 out, .param .f32 f, .param .f64 d, .param .f16 h, .param .s16 s,
                      .param .u8 b, .param .b32 bits, .param .align 4 .b8 pair[8])
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<8>;
  .reg .b16 %h<4>;
  ld.param.u64 %rd1, [out];
  ld.param.b32 %r1, [f];
  st.global.b32 [%rd1], %r1;
  ld.param.b64 %rd2, [d];
  st.global.b64 [%rd1+8], %rd2;
  ld.param.b16 %h1, [h];
  st.global.b16 [%rd1+16], %h1;
  ld.param.s16 %h2, [s];
  st.global.b16 [%rd1+18], %h2;
  ld.param.u8 %h3, [b];
  st.global.u8 [%rd1+20], %h3;
  ld.param.b32 %r2, [bits];
  st.global.b32 [%rd1+24], %r2;
  ld.param.b32 %r3, [pair];
  ld.param.b32 %r4, [pair+4];
  st.global.b32 [%rd1+28], %r3;
  st.global.b32 [%rd1+32], %r4;
  ret;
}
"""
