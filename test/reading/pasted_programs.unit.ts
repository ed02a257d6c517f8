import { spawnSync } from 'node:child_process';
import { DuckDBInstance } from '@duckdb/node-api';
import { describe, expect, it } from '@jest/globals';
import { shellWord } from '../../src/console/api/client.ts';
import { readingRecipes } from '../../src/reading/reading_recipes.ts';
import { worstNames } from '../destination/worst_names.ts';

// Prefix and columns of an export are chosen by those who may write to its project, and others paste the programs that name them.

const id = '018f0000-0000-4000-8000-000000000001';

/** Without backslashes and with balanced braces, as a prefix must be; with a folder of exportd's in a name. */
const worstPrefixes = [
  ...worstNames.filter((name) => !/[\\{}/]/.test(name)),
  `x_manifests`,
  `_manifests) listed); drop table customers; select 1 --`,
  `{table}/it's "x" \`y\`; -- $(touch pasted)/{year}`,
];

type Config = Readonly<Record<string, unknown>>;

const formats: readonly Config[] = [
  { file_format: 'Parquet', compression: 'zstd' },
  { file_format: 'Parquet', compression: 'zstd', table_format: 'delta' },
  { file_format: 'Parquet', compression: 'zstd', partition_by: ['date', 'hour'] },
  { file_format: 'JSONLines', compression: 'gzip' },
  { file_format: 'JSONLines', compression: 'zstd', partition_by: ['date'] },
  { file_format: 'CSV', compression: 'gzip' },
  { file_format: 'CSV', compression: 'gzip', partition_by: ['date', 'hour'] },
];

const recipesOf = (columns: readonly string[], config: Config) =>
  readingRecipes({
    id,
    model: 'events',
    columns: [{ name: 'uuid', type: 'uuid' }, ...columns.map((name) => ({ name, type: 'json' }) as const)],
    config: {
      bucket_name: 'exports',
      region: 'eu-west-1',
      endpoint_url: `https://s3.example.com/it's`,
      use_virtual_style_addressing: false,
      prefix: 'plain',
      ...config,
    },
  });

/** How a program writes texts and names, as regular expressions of its own lexer. */
const lexers: Readonly<Record<string, readonly RegExp[]>> = {
  DuckDB: [/'(?:[^']|'')*'/, /"(?:[^"]|"")*"/, /--[^\n]*/],
  Trino: [/'(?:[^']|'')*'/, /"(?:[^"]|"")*"/, /--[^\n]*/],
  Redshift: [/'(?:[^'\\]|''|\\.)*'/, /"(?:[^"]|"")*"/, /--[^\n]*/],
  Snowflake: [/'(?:[^'\\]|''|\\.)*'/, /"(?:[^"]|"")*"/, /--[^\n]*/, /\$\$/],
  ClickHouse: [/'(?:[^'\\]|''|\\.)*'/, /"(?:[^"\\]|""|\\.)*"/, /`(?:[^`\\]|``|\\.)*`/, /--[^\n]*/],
  BigQuery: [/'(?:[^'\\]|\\.)*'/, /"(?:[^"\\]|\\.)*"/, /`(?:[^`\\]|\\.)*`/, /--[^\n]*/, /#[^\n]*/],
  Athena: [/'(?:[^'\\]|''|\\.)*'/, /"(?:[^"]|"")*"/, /`(?:[^`]|``)*`/, /--[^\n]*/],
};
/** Python, also of Spark and the others. */
const python = [/"(?:[^"\\\n]|\\.)*"/, /'(?:[^'\\\n]|\\.)*'/, /#[^\n]*/];

/** The columns and types that a program has as a text, in the words of Spark and ClickHouse. */
const schemaIn = (reader: string, code: string): string =>
  reader === 'Spark'
    ? (JSON.parse(/\.schema\(("`uuid`(?:[^"\\]|\\.)*")\)/.exec(code)?.[1] ?? '""') as string)
    : (/'(`uuid`(?:[^'\\]|\\.)*)'/.exec(code)?.[1] ?? '').replaceAll(/\\(.)/g, '$1');
const schemaName = { Spark: /`(?:[^`]|``)*`/gu, ClickHouse: /`(?:[^`\\]|\\.)*`/gu } as const;

/** A program without what is in its texts, names and comments: what its readers run. */
const codeIn = ({ reader, code }: { reader: string; code: string }): string =>
  code.replaceAll(
    new RegExp((lexers[reader] ?? python).map(({ source }) => source).join('|'), 'gu'),
    (found) => `${found[0]}…`,
  );

const skeletonsOf = (columns: readonly string[], config: Config) =>
  new Map(recipesOf(columns, config).map((recipe) => [recipe.reader, codeIn(recipe)]));

describe('a program that reads an export', () => {
  it.each(formats)('runs the same whatever its columns are called: %j', (format) => {
    const plain = skeletonsOf(['plain'], format);
    expect(plain.size).toBeGreaterThan(4);
    for (const name of worstNames) {
      const odd = skeletonsOf([name], format);
      // polars cannot read a header of CSV with a quote.
      expect([...plain.keys()].filter((reader) => reader !== 'polars' && !odd.has(reader))).toEqual([]);
      for (const [reader, code] of odd)
        expect({ name, reader, code }).toEqual({ name, reader, code: plain.get(reader) });
    }
  });

  it.each(['Spark', 'ClickHouse'] as const)('names each column once in the schema of %s', (reader) => {
    const format = { file_format: 'JSONLines', compression: 'gzip' };
    const code = recipesOf(worstNames, format).find((recipe) => recipe.reader === reader)?.code ?? '';
    const schema = schemaIn(reader, code);
    const type = { Spark: 'STRING', ClickHouse: 'Nullable(String)' }[reader];
    const names = schema.match(schemaName[reader]) ?? [];
    const read = (name: string): string =>
      reader === 'Spark'
        ? name.slice(1, -1).replaceAll('``', '`')
        : name.slice(1, -1).replaceAll(/\\(.)/g, '$1');
    expect(names.map(read)).toEqual(['uuid', ...worstNames]);
    expect(schema.replaceAll(schemaName[reader], 'name').split(', ').slice(1)).toEqual(
      worstNames.map(() => `name ${type}`),
    );
  });

  it.each(formats)('runs the same whatever its prefix is: %j', (format) => {
    const plain = skeletonsOf(['plain'], format);
    for (const prefix of worstPrefixes) {
      const odd = skeletonsOf(['plain'], { ...format, prefix });
      expect(odd.size).toBeGreaterThan(2);
      // Some programs are not offered for a prefix that they would read as a pattern.
      for (const [reader, code] of odd)
        expect({ prefix, reader, code }).toEqual({ prefix, reader, code: plain.get(reader) });
    }
  });

  it('names the manifests below its own prefix, also where that has their name', () => {
    const found = recipesOf([], { ...formats[0], prefix: 'x_manifests/y' });
    const codeOf = (reader: string) => found.find((recipe) => recipe.reader === reader)?.code ?? '';
    expect(codeOf('Snowflake')).toContain(`url = 's3://exports/x_manifests/y/'`);
    expect(codeOf('Snowflake')).toContain(`from @bucket_018f0000/_manifests/${id}/ (`);
    expect(codeOf('Trino')).toContain(`external_location = 's3://exports/x_manifests/y/'`);
  });

  it('is as many statements of DuckDB as with plain names, which it parses', async () => {
    const instance = await DuckDBInstance.create(':memory:');
    const connection = await instance.connect();
    const statementsOf = async (columns: readonly string[], format: Config): Promise<number> => {
      const code = recipesOf(columns, format).find(({ reader }) => reader === 'DuckDB')?.code ?? '';
      return (await connection.extractStatements(code)).count;
    };
    for (const format of formats)
      expect([format, await statementsOf(worstNames, format)]).toEqual([
        format,
        await statementsOf(['plain'], format),
      ]);
    connection.closeSync();
    instance.closeSync();
  });
});

describe('a line for a shell', () => {
  it.each(['sh', 'bash'])('passes every word on as it is: %s', (shell) => {
    const words = [...worstNames, ...worstPrefixes, '', ' ', 'a\nb', '~', '*', '!!', '-n', 'a=b', '\t'];
    const { stdout, stderr } = spawnSync(shell, ['-c', `printf '%s\\0' ${words.map(shellWord).join(' ')}`], {
      encoding: 'utf8',
    });
    expect([stdout.split('\0').slice(0, -1), stderr]).toEqual([words, '']);
  });
});
