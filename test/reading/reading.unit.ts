import { describe, expect, it } from '@jest/globals';
import { readingRecipes } from '../../src/reading/reading_recipes.ts';

const id = '018f0000-0000-4000-8000-000000000001';
const columns = [
  { name: 'uuid', type: 'uuid' },
  { name: 'say "hi"', type: 'json' },
] as const;
const recipesOf = (config: object, model: 'events' | 'persons' = 'events') =>
  readingRecipes({
    id,
    model,
    columns,
    config: {
      bucket_name: 'exports',
      region: 'eu-west-1',
      prefix: 'events/{year}',
      endpoint_url: null,
      use_virtual_style_addressing: false,
      file_format: 'Parquet',
      compression: null,
      ...config,
    },
  });
const codeOf = (reader: string, config: object, model?: 'events' | 'persons') =>
  recipesOf(config, model).find((recipe) => recipe.reader === reader)?.code ?? '';

describe('the programs that read an export', () => {
  it('are for the readers that know its format', () => {
    const readers = (config: object) => recipesOf(config).map(({ reader }) => reader);
    const ofParquet = ['Spark', 'ClickHouse', 'Trino', 'Athena', 'BigQuery', 'Redshift', 'Snowflake'];
    expect(readers({})).toEqual(['DuckDB', 'pyarrow', 'polars', ...ofParquet]);
    expect(readers({ table_format: 'delta' })).toEqual(['DuckDB', 'deltalake', 'polars', ...ofParquet]);
    expect(codeOf('deltalake', { table_format: 'delta' })).toContain('"s3://exports/events"');
    expect(readers({ file_format: 'JSONLines' })).toEqual([
      'DuckDB',
      'Python',
      'Spark',
      'ClickHouse',
      'Snowflake',
    ]);
    expect(readers({ file_format: 'CSV' })).toEqual([
      'DuckDB',
      'pyarrow',
      'Spark',
      'ClickHouse',
      'Snowflake',
    ]);
    expect(readers({ file_format: 'CSV', compression: 'brotli' })).toEqual(['pyarrow', 'ClickHouse']);
    expect(readers({ prefix: 'a [b]' })[0]).toBe('pyarrow');
  });

  it.each([
    'DuckDB',
    'pyarrow',
    'polars',
    'Spark',
    'ClickHouse',
    'Trino',
    'Athena',
    'BigQuery',
    'Redshift',
    'Snowflake',
  ])('follow the manifests, which are below the part of the prefix before its variables: %s', (reader) => {
    expect(codeOf(reader, {})).toContain(
      reader === 'Snowflake' ? `_manifests/${id}/` : `events/_manifests/${id}/`,
    );
  });

  it('read the partitions of keys', () => {
    const partitioned = { prefix: '{table}', partition_by: ['date', 'hour'] };
    expect(codeOf('DuckDB', partitioned)).toContain(
      'hive_partitioning = true,\n  hive_types = {date: DATE, hour: INTEGER})',
    );
    expect(codeOf('pyarrow', partitioned)).toContain('pyarrow.schema([("date", pyarrow.date32()), ("hour",');
    expect(codeOf('polars', partitioned)).toContain(
      'hive_schema={"date": polars.Date, "hour": polars.Int32}',
    );
    expect(codeOf('Spark', partitioned)).toContain('option("basePath", "s3a://exports/").parquet(*files)');
    const athena = codeOf('Athena', partitioned);
    expect(athena).toContain('partitioned by (`date` date, `hour` int)\nstored as parquet');
    expect(athena).toContain(
      "'storage.location.template' = 's3://exports/events/date=${date}/hour=${hour}')",
    );
    for (const reader of ['DuckDB', 'pyarrow', 'polars', 'Spark', 'Athena'])
      expect(codeOf(reader, {})).not.toMatch(/hive|partition_|basePath|projection/);
  });

  it('name server and region', () => {
    const own = { endpoint_url: 'http://127.0.0.1:9000' };
    expect(codeOf('DuckDB', {})).toContain("region 'eu-west-1')");
    expect(codeOf('DuckDB', own)).toContain("endpoint '127.0.0.1:9000', use_ssl false, url_style 'path')");
    expect(codeOf('pyarrow', own)).toContain('endpoint_override="127.0.0.1:9000", scheme="http"');
    expect(codeOf('polars', own)).toContain('"aws_allow_http": "true"');
  });

  it('say what a reader of JSON lines rounds', () => {
    expect(codeOf('DuckDB', { file_format: 'JSONLines' })).toContain('-- DuckDB rounds numbers inside JSON');
    expect(codeOf('DuckDB', { file_format: 'CSV' })).not.toContain('rounds');
  });

  it('quote names and prefixes', () => {
    const odd = { prefix: `it's "odd" (1)`, file_format: 'JSONLines' };
    expect(codeOf('DuckDB', { file_format: 'JSONLines' })).toContain(`"say ""hi""": 'JSON'`);
    expect(codeOf('Python', odd)).toContain(
      String.raw`"it's \\"odd\\" (1)/_manifests/`.replaceAll('\\\\', '\\'),
    );
  });

  it('read the newest state of persons', () => {
    expect(codeOf('DuckDB', {}, 'persons')).toContain('qualify row_number() over (partition by distinct_id');
    expect(codeOf('DuckDB', {})).not.toContain('qualify');
  });
});
