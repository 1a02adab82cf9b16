// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// writeSBOM writes the list of what is in a program, as SPDX 2.3.
func (r release) writeSBOM(file string, p program, b *built) error {
	binary, err := os.ReadFile(b.file)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := spdxjson.Write(r.sbom(p, b, sha256.Sum256(binary)), &text, spdxjson.Indent("  ")); err != nil {
		return err
	}
	return writeFile(file, text.Bytes())
}

// sbom says that the document describes the program, that this contains its own module, and that
// the module depends on the others.
func (r release) sbom(p program, b *built, sum [sha256.Size]byte) *spdx.Document {
	digest := hex.EncodeToString(sum[:])
	document := &spdx.Document{
		SPDXVersion:    spdx.Version,
		DataLicense:    spdx.DataLicense,
		SPDXIdentifier: "DOCUMENT",
		DocumentName:   fmt.Sprintf("%s-%s-linux-%s", p.Binary, r.Version, b.architecture),
		// It has to be another one for every document. Nothing need be there.
		DocumentNamespace: fmt.Sprintf("https://lockstep.dev/spdx/%s/%s", p.Image, digest),
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Organization", Creator: "The Lockstep Authors"}, {CreatorType: "Tool", Creator: "lockstep-release"}},
			Created:  r.Created.Format(time.RFC3339),
		},
	}
	program := &spdx.Package{
		PackageName:               p.Binary,
		PackageSPDXIdentifier:     "Program",
		PackageVersion:            r.Version,
		PackageFileName:           "/bin/" + p.Binary,
		PackageDownloadLocation:   unknown,
		IsFilesAnalyzedTagPresent: true,
		PackageChecksums:          []common.Checksum{{Algorithm: common.SHA256, Value: digest}},
		PackageLicenseConcluded:   unknown,
		PackageLicenseDeclared:    "Apache-2.0",
		PackageCopyrightText:      unknown,
		PrimaryPackagePurpose:     "APPLICATION",
	}
	document.Packages = []*spdx.Package{program}
	relate := func(from, kind, to common.ElementID) {
		document.Relationships = append(document.Relationships, &spdx.Relationship{
			RefA: common.DocElementID{ElementRefID: from}, Relationship: string(kind), RefB: common.DocElementID{ElementRefID: to},
		})
	}
	relate("DOCUMENT", common.ElementID(common.TypeRelationshipDescribe), program.PackageSPDXIdentifier)
	for i, m := range b.modules {
		part := m.packageOf()
		document.Packages = append(document.Packages, part)
		if i == 0 {
			relate(program.PackageSPDXIdentifier, common.ElementID(common.TypeRelationshipContains), part.PackageSPDXIdentifier)
		} else {
			relate(document.Packages[1].PackageSPDXIdentifier, common.ElementID(common.TypeRelationshipDependsOn), part.PackageSPDXIdentifier)
		}
	}
	return document
}

// notInIdentifiers are the characters that SPDX does not allow there.
var notInIdentifiers = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// packageOf is a module in words of SPDX. Its purl is the name by which scanners look up
// vulnerabilities.
func (m module) packageOf() *spdx.Package {
	return &spdx.Package{
		PackageName:               m.path,
		PackageSPDXIdentifier:     common.ElementID("Module-" + notInIdentifiers.ReplaceAllString(m.path, "-")),
		PackageVersion:            m.version,
		PackageDownloadLocation:   unknown,
		IsFilesAnalyzedTagPresent: true,
		PackageLicenseConcluded:   unknown,
		PackageLicenseDeclared:    m.declared(),
		PackageCopyrightText:      unknown,
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: "PACKAGE-MANAGER", RefType: "purl", Locator: "pkg:golang/" + m.path + "@" + m.version,
		}},
	}
}
