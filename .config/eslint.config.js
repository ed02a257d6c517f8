import { join } from 'node:path';
import eslint from '@eslint/js';
import jest from 'eslint-plugin-jest';
import typescript from 'typescript-eslint';
import { projections } from '../src/projections/registry.ts';

const root = join(import.meta.dirname, '..');

const projectionTables = projections.flatMap(({ owns }) => owns).map((table) => table.replace('.', '\\.'));
const writesProjection = `/(insert\\s+into|update|delete\\s+from|truncate)\\s+(${projectionTables.join('|')})\\b/i`;
const projectionMessage = 'Only src/projections writes read models: append an event instead.';

export default typescript.config(
  { ignores: ['node_modules/', '.exportd/', '.exportd-test/', 'coverage/', 'test/histories/*.json'] },
  eslint.configs.recommended,
  ...typescript.configs.strictTypeChecked,
  ...typescript.configs.stylisticTypeChecked,
  {
    languageOptions: { parserOptions: { project: join(root, 'tsconfig.json'), tsconfigRootDir: root } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // What is stored as JSON has to be a type: an interface is never one of JsonValue.
      '@typescript-eslint/consistent-type-definitions': 'off',
      '@typescript-eslint/array-type': ['error', { default: 'array' }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      'no-console': 'error',
      eqeqeq: 'error',
    },
  },
  {
    files: ['src/**/*.ts', 'activities/**/*.ts', 'workflows/**/*.ts'],
    ignores: ['src/projections/**'],
    rules: {
      'no-restricted-syntax': [
        'error',
        { selector: `Literal[value=${writesProjection}]`, message: projectionMessage },
        { selector: `TemplateElement[value.raw=${writesProjection}]`, message: projectionMessage },
      ],
    },
  },
  {
    files: ['src/console/**/*.ts'],
    languageOptions: { parserOptions: { project: join(root, 'src/console/tsconfig.json') } },
  },
  {
    files: ['workflows/**/*.ts'],
    rules: {
      'no-restricted-globals': [
        'error',
        'process',
        'Buffer',
        'setImmediate',
        'WeakRef',
        'FinalizationRegistry',
      ],
    },
  },
  {
    files: ['test/**/*.ts'],
    ...jest.configs['flat/recommended'],
    settings: { jest: { version: 30 } },
    rules: {
      ...jest.configs['flat/recommended'].rules,
      'jest/no-disabled-tests': 'error',
      'jest/expect-expect': [
        'error',
        { assertFunctionNames: ['expect', 'expect*', 'waitFor', 'fc.assert', '**.then', '**.thenRejected'] },
      ],
      'jest/no-standalone-expect': ['error', { additionalTestBlockFunctions: ['afterEach'] }],
    },
  },
  { files: ['**/*.js', '**/*.mjs', '**/*.cjs'], ...typescript.configs.disableTypeChecked },
  { files: ['**/*.cjs'], rules: { '@typescript-eslint/no-require-imports': 'off' } },
  {
    files: ['**/*.js', '**/*.mjs', '**/*.cjs'],
    languageOptions: {
      globals: {
        URL: 'readonly',
        clearInterval: 'readonly',
        module: 'writable',
        process: 'readonly',
        require: 'readonly',
        setInterval: 'readonly',
      },
    },
  },
);
