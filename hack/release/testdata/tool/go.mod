module example.com/tool

go 1.26.0

require github.com/opencontainers/image-spec v1.1.1
