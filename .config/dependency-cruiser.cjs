// The import rules of the house. Data flows one way: http → signal → workflow → activity → journal → projection → http.
/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'workflows-are-sandboxed',
      comment:
        'At run time workflow code sees the contract and the workflow library, nothing else; of all other folders only types.',
      severity: 'error',
      from: { path: '^workflows/' },
      to: {
        pathNot: '^(workflows/|src/contract/|node_modules/@temporalio/(workflow|common)/)',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'contract-imports-nothing',
      comment: 'The contract is part of the sandboxed workflow bundle.',
      severity: 'error',
      from: { path: '^src/contract/' },
      to: { pathNot: '^src/contract/' },
    },
    {
      name: 'domain-is-pure',
      comment: 'A time zone library is all that the domain needs.',
      severity: 'error',
      from: { path: '^src/domain/' },
      to: { pathNot: '^(src/domain/|node_modules/(@types/)?luxon/)' },
    },
    {
      name: 'http-and-activities-never-meet',
      severity: 'error',
      from: { path: '^src/http/' },
      to: { path: '^activities/' },
    },
    {
      name: 'activities-and-http-never-meet',
      severity: 'error',
      from: { path: '^activities/' },
      to: { path: '^src/http/' },
    },
    {
      name: 'activities-do-not-build',
      comment:
        'What an activity works with is handed to it; only cli, local_stack, temporal and the servers build things.',
      severity: 'error',
      from: { path: '^activities/' },
      to: { path: '^src/(cli|local_stack|temporal)/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'journal-and-projections-stand-alone',
      severity: 'error',
      from: { path: '^src/(journal|projections)/' },
      to: {
        path: '^(src/(http|cli|local_stack|temporal|decisions|destination|source|encoding)|activities|workflows)/',
      },
    },
    {
      name: 'data-plane-stands-alone',
      comment: 'Reading, encoding and writing know nothing of decisions, HTTP or Temporal.',
      severity: 'error',
      from: { path: '^src/(source|encoding)/' },
      to: {
        path: '^(src/(http|cli|local_stack|temporal|decisions|projections|journal)|activities|workflows)/',
      },
    },
    {
      name: 'only-entry-points-compose',
      severity: 'error',
      from: { path: '^src/(?!cli/|local_stack/|bench/)' },
      to: { path: '^src/(cli|local_stack|bench)/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    detectProcessBuiltinModuleCalls: false,
    enhancedResolveOptions: {
      extensions: ['.ts', '.mjs', '.js', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
