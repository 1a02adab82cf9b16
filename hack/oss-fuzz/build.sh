#!/bin/bash -eu
# Copyright The Lockstep Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds all fuzz tests in the image of OSS-Fuzz, which has the command used here: PACKAGE FUNCTION PROGRAM. It is the
# second version of it, because the fuzz tests use helpers of other test files. A test in docs holds that each
# fuzz test has its line.

module=github.com/lockstep-k8s/lockstep
compile_native_go_fuzzer_v2 $module/apis/config/v1alpha1 FuzzDecode config_decode
compile_native_go_fuzzer_v2 $module/apis/framework/statuscodec FuzzDecompressRoles statuscodec_decompress_roles
compile_native_go_fuzzer_v2 $module/barrier FuzzRenderInjector barrier_render_injector
compile_native_go_fuzzer_v2 $module/controller/frameworks FuzzFrameworkFromServer frameworks_framework_from_server
compile_native_go_fuzzer_v2 $module/controller/frameworks FuzzGarbledFramework frameworks_garbled_framework
compile_native_go_fuzzer_v2 $module/controller/lifecycle FuzzClassifyPodFailure lifecycle_classify_pod_failure
compile_native_go_fuzzer_v2 $module/internal/quantity FuzzCheckJSON quantity_check_json
compile_native_go_fuzzer_v2 $module/scheduler-plugin/coscheduling/planner FuzzPlans planner_plans
