//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// claimOfJob is the spec of a claim that no provisioner takes for its own.
const claimOfJob = "volumeClaim: {storageClassName: '', accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"

func TestVolumesOfJobs(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"a claim is made for the Job and goes with it, one that is named stays": func(t *testing.T) {
			namespace := cluster.Namespace(t)
			makeClaim(t, namespace, "existing")
			j := cluster.CreateVolcanoJob(t, namespace, "j", "{volumes: [{mountPath: /in, volumeClaimName: existing}, {mountPath: /out, "+claimOfJob+"}], tasks: [{name: a, replicas: 1, @∞{initContainers: [{name: init, image: i}]}}]}", nil)
			pod := j.Pod("j-a-0")
			made := ownClaim(t, j)
			if paths := mountPaths(pod.Spec.InitContainers[0]); len(paths) > 0 {
				t.Errorf("the init container mounts %v", paths)
			}
			if paths := mountPaths(pod.Spec.Containers[0]); !slices.Equal(paths, []string{"/in", "/out"}) {
				t.Errorf("the container mounts %v", paths)
			}
			j.Is("tell of both claims", func(s *batchv1alpha1.JobStatus) bool {
				return s.ControlledResources["volume-pvc-existing"] == "existing" && s.ControlledResources["volume-pvc-"+made] == made
			})
			if err := cluster.Lockstep.BatchV1alpha1().Jobs(namespace).Delete(t.Context(), "j", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			testbed.Eventually(t, "the claim of the Job to be gone", func(ctx context.Context) (bool, string, error) {
				_, err := cluster.Kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, made, metav1.GetOptions{})
				return apierrors.IsNotFound(err), "", nil
			})
			if claim, err := cluster.Kube.CoreV1().PersistentVolumeClaims(namespace).Get(t.Context(), "existing", metav1.GetOptions{}); err != nil || claim.DeletionTimestamp != nil {
				t.Errorf("the claim of the user is %v (%v)", claim, err)
			}
		},
		"a Job waits for a claim that is missing, and says so": func(t *testing.T) {
			j := given(t, "{volumes: [{mountPath: /in, volumeClaimName: late}], tasks: [{name: a, replicas: 1, @∞}]}").Passes(pending)
			j.Tells(corev1.EventTypeWarning, "PVCError", "late").Stays(2 * time.Second).HasPods()
			makeClaim(t, j.Namespace, "late")
			bindClaim(t, j.Namespace, "late")
			j.Passes(running)
		},
		"a restarted Job keeps its claim, and two entries with one claim are both mounted": func(t *testing.T) {
			namespace := cluster.Namespace(t)
			makeClaim(t, namespace, "existing")
			bindClaim(t, namespace, "existing")
			j := cluster.CreateVolcanoJob(t, namespace, "j", "{volumes: [{mountPath: /in, volumeClaimName: existing}, {mountPath: /too, volumeClaimName: existing}, {mountPath: /out, "+claimOfJob+"}], tasks: [{name: a, replicas: 1, @∞}]}", nil)
			if paths := mountPaths(j.Pod("j-a-0").Spec.Containers[0]); !slices.Equal(paths, []string{"/in", "/out", "/too"}) {
				t.Errorf("the container mounts %v", paths)
			}
			made := ownClaim(t, j)
			bindClaim(t, namespace, made)
			j.Passes(running).Do(restart).Passes(restarting, running)
			if after := ownClaim(t, j); after != made {
				t.Errorf("the claim was %s and is %s", made, after)
			}
		},
	})
}

// ownClaim is the name of the claim that the Job controls, once it is there.
func ownClaim(t *testing.T, j *testbed.VolcanoJob) string {
	t.Helper()
	name := ""
	testbed.Eventually(t, "the claim of the Job", func(ctx context.Context) (bool, string, error) {
		list, err := cluster.Kube.CoreV1().PersistentVolumeClaims(j.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		for i := range list.Items {
			if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.UID == j.UID {
				name = list.Items[i].Name
			}
		}
		return name != "", "", nil
	})
	if !strings.HasPrefix(name, "j-pvc-") || len(name) != len("j-pvc-")+12 {
		t.Errorf("the claim is called %s", name)
	}
	return name
}

func makeClaim(t *testing.T, namespace, name string) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(""), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if _, err := cluster.Kube.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// bindClaim makes a volume for a claim, as a provisioner would.
func bindClaim(t *testing.T, namespace, name string) {
	t.Helper()
	cluster.BindClaim(t, namespace, name, "/simulated")
}

// mountPaths are where a container mounts what the Job gives it.
func mountPaths(container corev1.Container) []string {
	var paths []string
	for _, mount := range container.VolumeMounts {
		if !strings.HasPrefix(mount.MountPath, "/var/run/secrets") {
			paths = append(paths, mount.MountPath)
		}
	}
	slices.Sort(paths)
	return paths
}
