import tseslint from 'typescript-eslint'

// Who may import whom: the way of the data, net → pipeline → editors (asking features) → net.
// A folder may import itself and the folders listed for it; only lifecycle, cli and main see everything.
const mayImport = {
  protocol: [],
  records: [],
  runtime: [],
  telemetry: ['protocol', 'runtime'],
  config: ['protocol'],
  net: ['protocol', 'records', 'runtime', 'telemetry'],
  cluster: ['protocol', 'records', 'runtime', 'telemetry', 'net'],
  state: ['protocol', 'records', 'runtime', 'telemetry', 'net', 'cluster'],
  pipeline: ['protocol', 'records', 'runtime', 'telemetry', 'net'],
  instances: ['protocol', 'records', 'runtime', 'telemetry', 'net', 'pipeline'],
  editors: ['protocol', 'records', 'runtime', 'telemetry', 'net', 'pipeline', 'instances', 'cluster'],
  features: [
    'protocol',
    'records',
    'runtime',
    'telemetry',
    'net',
    'pipeline',
    'instances',
    'cluster',
    'state',
    'editors',
  ],
  'fake-broker': ['protocol', 'records', 'runtime'],
  admin: ['protocol', 'runtime', 'telemetry'],
}
const folders = [...Object.keys(mayImport), 'lifecycle', 'cli']

const importRules = Object.entries(mayImport).map(([folder, allowed]) => ({
  files: [`src/${folder}/**/*.ts`],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          {
            regex: `^(\\.\\./)+(${folders.filter((f) => f !== folder && !allowed.includes(f)).join('|')})/`,
            message: `src/${folder} may import only: ${allowed.join(', ') || 'nothing of ours'}.`,
          },
        ],
      },
    ],
  },
}))

export default tseslint.config(
  { ignores: ['dist/', 'src/protocol/generated/', 'test/clients/**/node_modules/', '.cache/'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', name: ['test', 'describe', 'it', 'suite'], package: 'node:test' },
          ],
        },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      'max-lines-per-function': ['error', { max: 70, skipBlankLines: true, skipComments: true }],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
    },
  },
  { files: ['test/**/*.ts', 'scripts/**/*.ts'], rules: { 'max-lines-per-function': 'off' } },
  ...importRules,
)
