; tests/corpus/foreign/source/triton_style.ll - masked vector add as a tile compiler lowers it
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@global_smem = external addrspace(3) global [0 x i8], align 16

define void @add_kernel(float addrspace(1)* %x, float addrspace(1)* %y, float addrspace(1)* %out, i32 %n) !dbg !5 {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !dbg !8
  %cta = call i32 asm "mov.u32 $0, %ctaid.x;", "=r"(), !dbg !9
  %lane = and i32 %tid, 127, !dbg !9
  %four = shl i32 %lane, 2, !dbg !9
  %base = shl i32 %cta, 9, !dbg !9
  %index = or i32 %base, %four, !dbg !9
  %inside = icmp slt i32 %index, %n, !dbg !10
  %wide = sext i32 %index to i64, !dbg !11
  %px = getelementptr float, float addrspace(1)* %x, i64 %wide, !dbg !11
  %py = getelementptr float, float addrspace(1)* %y, i64 %wide, !dbg !11
  %vx = call { i32, i32, i32, i32 } asm sideeffect "mov.u32 $0, 0x0;\0A\09mov.u32 $1, 0x0;\0A\09mov.u32 $2, 0x0;\0A\09mov.u32 $3, 0x0;\0A\09@$5 ld.global.v4.b32 { $0, $1, $2, $3 }, [ $4 + 0 ];", "=r,=r,=r,=r,l,b"(float addrspace(1)* %px, i1 %inside), !dbg !11
  %vy = call { i32, i32, i32, i32 } asm sideeffect "mov.u32 $0, 0x0;\0A\09mov.u32 $1, 0x0;\0A\09mov.u32 $2, 0x0;\0A\09mov.u32 $3, 0x0;\0A\09@$5 ld.global.L1::evict_last.v4.b32 { $0, $1, $2, $3 }, [ $4 + 0 ];", "=r,=r,=r,=r,l,b"(float addrspace(1)* %py, i1 %inside), !dbg !12
  %x0 = extractvalue { i32, i32, i32, i32 } %vx, 0
  %x1 = extractvalue { i32, i32, i32, i32 } %vx, 1
  %y0 = extractvalue { i32, i32, i32, i32 } %vy, 0
  %y1 = extractvalue { i32, i32, i32, i32 } %vy, 1
  %fx0 = bitcast i32 %x0 to float
  %fx1 = bitcast i32 %x1 to float
  %fy0 = bitcast i32 %y0 to float
  %fy1 = bitcast i32 %y1 to float
  %s0 = fadd float %fx0, %fy0, !dbg !13
  %s1 = fadd float %fx1, %fy1, !dbg !13
  %r0 = bitcast float %s0 to i32
  %r1 = bitcast float %s1 to i32
  %smem = getelementptr [0 x i8], [0 x i8] addrspace(3)* @global_smem, i32 0, i32 %lane
  call void asm sideeffect "@$2 st.shared.b32 [ $0 + 0 ], $1;", "r,r,b"(i8 addrspace(3)* %smem, i32 %r0, i1 %inside), !dbg !13
  call void @llvm.nvvm.barrier0(), !dbg !13
  %shf = call i32 asm "shfl.sync.bfly.b32 $0, $1, 0x10, 0x1f, 0xffffffff;", "=r,r"(i32 %r0), !dbg !13
  %po = getelementptr float, float addrspace(1)* %out, i64 %wide, !dbg !14
  call void asm sideeffect "@$3 st.global.v2.b32 [ $2 + 0 ], { $0, $1 };", "r,r,l,b"(i32 %shf, i32 %r1, float addrspace(1)* %po, i1 %inside), !dbg !14
  ret void, !dbg !15
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}
!nvvm.annotations = !{!4, !16}

!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, producer: "tile compiler", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug)
!1 = !DIFile(filename: "add.py", directory: "")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !{i32 4, !"nvvm-reflect-ftz", i32 1}
!4 = !{void (float addrspace(1)*, float addrspace(1)*, float addrspace(1)*, i32)* @add_kernel, !"kernel", i32 1}
!5 = distinct !DISubprogram(name: "add_kernel", linkageName: "add_kernel", scope: !1, file: !1, line: 7, type: !6, scopeLine: 7, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!6 = !DISubroutineType(cc: DW_CC_normal, types: !7)
!7 = !{}
!8 = !DILocation(line: 9, column: 24, scope: !5)
!9 = !DILocation(line: 10, column: 40, scope: !5)
!10 = !DILocation(line: 12, column: 21, scope: !5)
!11 = !DILocation(line: 13, column: 16, scope: !5)
!12 = !DILocation(line: 14, column: 16, scope: !5)
!13 = !DILocation(line: 15, column: 17, scope: !5)
!14 = !DILocation(line: 16, column: 35, scope: !5)
!15 = !DILocation(line: 16, column: 4, scope: !5)
!16 = !{void (float addrspace(1)*, float addrspace(1)*, float addrspace(1)*, i32)* @add_kernel, !"maxntidx", i32 128}
