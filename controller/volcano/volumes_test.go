// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const claimed = `{volumes: [{mountPath: /in, volumeClaimName: existing}, {mountPath: /out, volumeClaim: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}},
  {mountPath: /again, volumeClaimName: existing}], tasks: [{name: a, replicas: 1, template: {spec: {initContainers: [{name: i}], containers: [{name: c}, {name: d}]}}}]}`

func TestAJobOwnsTheClaimsThatItDescribes(t *testing.T) {
	b := builderOf(t, claimed)
	if len(b.claims) != 2 {
		t.Fatalf("got %d claims, want 2", len(b.claims))
	}
	if existing := b.claims[0]; existing.Name != "existing" || existing.Object != nil {
		t.Errorf("got %+v, want the existing claim", existing)
	}
	made := b.claims[1].Object
	if !regexp.MustCompile(`^j-pvc-[0-9a-z]{12}$`).MatchString(made.Name) || made.Name != b.claims[1].Name {
		t.Errorf("the name is %q and %q", made.Name, b.claims[1].Name)
	}
	if owners := made.OwnerReferences; len(owners) != 1 || owners[0].UID != "u" || made.Namespace != "ns" {
		t.Errorf("owners: got %v", owners)
	}
	if storage := made.Spec.Resources.Requests.Storage(); storage.String() != "1Gi" || made.Spec.AccessModes[0] != corev1.ReadWriteOnce {
		t.Errorf("spec: got %+v", made.Spec)
	}
	expect(t, "controlledResources", map[string]string{"volume-pvc-existing": "existing", "volume-pvc-" + made.Name: made.Name}, claimResources(b.claims))
}

func TestClaimsAreMountedIntoContainersOnly(t *testing.T) {
	b := builderOf(t, claimed)
	spec := b.pod(0, 0, podMoment{}).Spec
	var volumes []string
	for _, volume := range spec.Volumes {
		volumes = append(volumes, volume.Name+" of "+volume.PersistentVolumeClaim.ClaimName)
	}
	in, out := b.claims[0].volume, b.claims[1].volume
	expect(t, "volumes", []string{in + " of existing", out + " of " + b.claims[1].Name}, volumes)
	for _, container := range spec.Containers {
		expect(t, "mounts of "+container.Name, []string{in + " at /in ", in + " at /again ", out + " at /out "}, mountsOf(container))
	}
	expect(t, "mounts of the init container", nil, mountsOf(spec.InitContainers[0]))
	if !regexp.MustCompile(`^j-[0-9a-z]{12}$`).MatchString(in) || in == out {
		t.Errorf("names of volumes: got %s and %s", in, out)
	}
}

func TestNamesOfClaimsStayAndDiffer(t *testing.T) {
	const spec = "{volumes: [{mountPath: /a, volumeClaim: {}}, {mountPath: /b, volumeClaim: {}}], tasks: [{name: a, replicas: 1, @t}]}"
	first, again := builderOf(t, spec), builderOf(t, spec)
	if first.claims[0].Name != again.claims[0].Name || first.claims[0].volume != again.claims[0].volume {
		t.Errorf("the same claim is named %+v and %+v", first.claims[0], again.claims[0])
	}
	if first.claims[0].Name == first.claims[1].Name {
		t.Errorf("two claims have the name %s", first.claims[0].Name)
	}
	job := jobOf(t, objectOf(t, "", spec))
	job.UID = "another"
	other, err := claimsOf(job, &job.Spec)
	if err != nil || other[0].Name == first.claims[0].Name {
		t.Errorf("a Job made anew has the claim %s of the old one: %v", other[0].Name, err)
	}
}

func TestANameBesideAClaimIsTheClaims(t *testing.T) {
	job := jobOf(t, objectOf(t, "", "{volumes: [{mountPath: /a, volumeClaimName: made, volumeClaim: {storageClassName: s}}], tasks: [{name: a, replicas: 1, @t}]}"))
	claims := builderFor(t, job).claims
	if len(claims) != 1 || claims[0].Name != "made" || claims[0].Object == nil || *claims[0].Object.Spec.StorageClassName != "s" {
		t.Errorf("got %+v, want the claim made", claims)
	}
}
