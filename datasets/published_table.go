package datasets

// Where files come from. Addresses in repositories name a commit, so that their
// content cannot change.
const (
	ogbFiles           = "https://snap.stanford.edu/ogb/data/nodeproppred/"
	ogbHome            = "https://ogb.stanford.edu/docs/nodeprop/"
	planetoidFiles     = "https://raw.githubusercontent.com/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/"
	planetoidHome      = "https://github.com/kimiyoung/planetoid"
	planetoidLicence   = "MIT (the repository; LINQS states none for the data)"
	heterophilousFiles = "https://raw.githubusercontent.com/yandex-research/heterophilous-graphs/a431395582e929d88271309716bea4fe24ce6318/data/"
	heterophilousHome  = "https://github.com/yandex-research/heterophilous-graphs"
)

// published has the names that -dataset takes for sets under the root.
//
// OGB and DGL publish no checksums; the sizes of their files are approximate. One
// file of pubmed was not at hand when the others were hashed.
var published = []PublishedSet{
	{
		Name: "cora", Describe: "citation network: 2,708 nodes, 7 classes",
		Home: planetoidHome, Licence: planetoidLicence, Disk: 64 << 20,
		Files: []PublishedFile{
			{planetoidFiles + "ind.cora.x", 22_119, "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab"},
			{planetoidFiles + "ind.cora.tx", 148_025, "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a"},
			{planetoidFiles + "ind.cora.allx", 257_305, "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543"},
			{planetoidFiles + "ind.cora.y", 4_054, "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1"},
			{planetoidFiles + "ind.cora.ty", 28_135, "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad"},
			{planetoidFiles + "ind.cora.ally", 47_959, "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71"},
			{planetoidFiles + "ind.cora.graph", 59_847, "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d"},
			{planetoidFiles + "ind.cora.test.index", 5_000, "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875"},
		},
	},
	{
		Name: "citeseer", Describe: "citation network: 3,327 nodes, 6 classes",
		Home: planetoidHome, Licence: planetoidLicence, Disk: 128 << 20,
		Files: []PublishedFile{
			{planetoidFiles + "ind.citeseer.x", 31_087, "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6"},
			{planetoidFiles + "ind.citeseer.tx", 260_321, "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21"},
			{planetoidFiles + "ind.citeseer.allx", 595_021, "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668"},
			{planetoidFiles + "ind.citeseer.y", 3_014, "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924"},
			{planetoidFiles + "ind.citeseer.ty", 24_135, "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce"},
			{planetoidFiles + "ind.citeseer.ally", 55_623, "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95"},
			{planetoidFiles + "ind.citeseer.graph", 61_987, "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7"},
			{planetoidFiles + "ind.citeseer.test.index", 5_000, "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4"},
		},
	},
	{
		Name: "pubmed", Describe: "citation network: 19,717 nodes, 3 classes",
		Home: planetoidHome, Licence: planetoidLicence, Disk: 128 << 20,
		Files: []PublishedFile{
			{planetoidFiles + "ind.pubmed.x", 23_172, "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33"},
			{planetoidFiles + "ind.pubmed.tx", 405_505, "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d"},
			{planetoidFiles + "ind.pubmed.allx", 7_600_000, ""},
			{planetoidFiles + "ind.pubmed.y", 854, "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3"},
			{planetoidFiles + "ind.pubmed.ty", 12_135, "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd"},
			{planetoidFiles + "ind.pubmed.ally", 224_739, "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e"},
			{planetoidFiles + "ind.pubmed.graph", 471_808, "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9"},
			{planetoidFiles + "ind.pubmed.test.index", 6_000, "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5"},
		},
	},
	{
		Name: "reddit", Describe: "posts of September 2014: 232,965 nodes, 114.6M edges, 41 classes",
		Home: "https://docs.dgl.ai/generated/dgl.data.RedditDataset.html", Licence: "none stated", Disk: 6 << 30,
		Files: []PublishedFile{{"https://data.dgl.ai/dataset/reddit.zip", 1_400_000_000, ""}},
	},
	{
		Name: "ogbn-arxiv", Describe: "citation network: 169,343 nodes, 1.2M edges, 40 classes",
		Home: ogbHome + "#ogbn-arxiv", Licence: "ODC-BY", Disk: 1 << 30,
		Files: []PublishedFile{{ogbFiles + "arxiv.zip", 83_000_000, ""}},
	},
	{
		Name: "ogbn-products", Describe: "co-purchases: 2,449,029 nodes, 61.9M undirected edges, 47 classes",
		Home: ogbHome + "#ogbn-products", Licence: "Amazon license", Disk: 6 << 30,
		Files: []PublishedFile{{ogbFiles + "products.zip", 1_480_000_000, ""}},
	},
	{
		Name: "ogbn-papers100M", Describe: "citation network: 111,059,956 nodes, 1.6G edges, 172 classes",
		Home: ogbHome + "#ogbn-papers100M", Licence: "ODC-BY", Disk: 240 << 30,
		Files: []PublishedFile{{ogbFiles + "papers100M-bin.zip", 60_300_000_000, ""}},
	},
	{
		Name: "minesweeper", Describe: "grid: 10,000 nodes, 2 classes",
		Home: heterophilousHome, Licence: "MIT", Disk: 64 << 20,
		Files: []PublishedFile{{heterophilousFiles + "minesweeper.npz", 135_045, "e664c8dacf1e8ac466c2c09ed4b237bd2c5541f47a6eae9c6092cb87f16412b3"}},
	},
	{
		Name: "tolokers", Describe: "workers: 11,758 nodes, 519,000 undirected edges, 2 classes",
		Home: heterophilousHome, Licence: "MIT", Disk: 64 << 20,
		Files: []PublishedFile{{heterophilousFiles + "tolokers.npz", 1_329_769, "dacf3ac94cec53d03cd2adb5255c08b33dee1656c33ca8164a464bd9450a1667"}},
	},
}
