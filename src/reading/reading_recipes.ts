import type { Model } from '../domain/batch_export.ts';
import type { ColumnType, ExportedColumn } from '../source/row_selection.ts';
import type { FileFormat } from '../destination/formats.ts';
import { manifestFolder } from '../destination/keys.ts';
import { constantPrefix, tableRoot } from '../destination/prefix.ts';
import type { PartitionColumn } from '../destination/partitions.ts';

/** What decides how the files of an export are read. */
interface ReadableExport {
  readonly id: string;
  readonly model: Model;
  /** The columns of its files. */
  readonly columns: readonly Pick<ExportedColumn, 'name' | 'type'>[];
  /** The stored config of its destination. */
  readonly config: Readonly<Record<string, unknown>>;
}

/** A program that reads the current files of an export, filled in. */
export interface ReadingRecipe {
  readonly reader: string;
  readonly language: 'sql' | 'python';
  readonly code: string;
  /** Whether exportd's tests run it. */
  readonly tested: boolean;
}

/** The fields of a stored config that readers need. */
interface Store {
  readonly bucket_name: string;
  readonly region: string;
  readonly prefix: string;
  readonly endpoint_url: string | null;
  readonly use_virtual_style_addressing: boolean;
  readonly file_format: FileFormat['file_format'];
  readonly compression: string | null;
  /** Absent in configs of former versions. */
  readonly table_format?: string | null;
  readonly partition_by?: readonly PartitionColumn[];
}

/** What the recipes share. */
interface Recipe extends ReadableExport {
  readonly store: Store;
  /** The folder of all files of the export in the bucket, with a slash at its end; empty for the bucket. */
  readonly root: string;
  /** That of the manifests. */
  readonly folder: string;
  readonly partitions: readonly PartitionColumn[];
}

/** The types of the columns in other programs. */
const types = {
  duckdb: {
    uuid: 'UUID',
    text: 'VARCHAR',
    timestamp: 'TIMESTAMPTZ',
    date: 'DATE',
    json: 'JSON',
    bigint: 'BIGINT',
    integer: 'INTEGER',
    double: 'DOUBLE',
    boolean: 'BOOLEAN',
  },
  spark: {
    uuid: 'STRING',
    text: 'STRING',
    timestamp: 'TIMESTAMP',
    date: 'DATE',
    json: 'STRING',
    bigint: 'BIGINT',
    integer: 'INT',
    double: 'DOUBLE',
    boolean: 'BOOLEAN',
  },
  clickhouse: {
    uuid: 'Nullable(UUID)',
    text: 'Nullable(String)',
    timestamp: "Nullable(DateTime64(6, 'UTC'))",
    date: 'Nullable(Date32)',
    json: 'Nullable(String)',
    bigint: 'Nullable(Int64)',
    integer: 'Nullable(Int32)',
    double: 'Nullable(Float64)',
    boolean: 'Nullable(Bool)',
  },
  trino: {
    uuid: 'varchar',
    text: 'varchar',
    timestamp: 'timestamp(6)',
    date: 'date',
    json: 'varchar',
    bigint: 'bigint',
    integer: 'integer',
    double: 'double',
    boolean: 'boolean',
  },
  bigquery: {
    uuid: 'STRING',
    text: 'STRING',
    timestamp: 'TIMESTAMP',
    date: 'DATE',
    json: 'STRING',
    bigint: 'INT64',
    integer: 'INT64',
    double: 'FLOAT64',
    boolean: 'BOOL',
  },
  redshift: {
    uuid: 'varchar(36)',
    text: 'varchar(65535)',
    timestamp: 'timestamp',
    date: 'date',
    json: 'varchar(65535)',
    bigint: 'bigint',
    integer: 'int',
    double: 'double precision',
    boolean: 'boolean',
  },
  snowflake: {
    uuid: 'VARCHAR',
    text: 'VARCHAR',
    timestamp: 'TIMESTAMP_TZ',
    date: 'DATE',
    json: 'VARIANT',
    bigint: 'NUMBER',
    integer: 'NUMBER',
    double: 'FLOAT',
    boolean: 'BOOLEAN',
  },
} as const satisfies Record<string, Record<ColumnType, string>>;

/** The types of partitions in other programs, which read them from the keys. */
const partitionTypes = {
  duckdb: { date: 'DATE', hour: 'INTEGER' },
  pyarrow: { date: 'pyarrow.date32()', hour: 'pyarrow.int32()' },
  polars: { date: 'polars.Date', hour: 'polars.Int32' },
  athena: { date: 'date', hour: 'int' },
} as const;

/** Between quotes, which a program reads literally where they are twice. */
const doubled =
  (quote: string) =>
  (text: string): string =>
    quote + text.replaceAll(quote, quote + quote) + quote;

/** Between quotes, which a program reads literally after a backslash. */
const escaped =
  (quote: string) =>
  (text: string): string =>
    quote + text.replaceAll('\\', '\\\\').replaceAll(quote, `\\${quote}`) + quote;

/** How programs write texts and names. Prefixes and columns are those of the export: without quotes, they would be code. */
const quoted = {
  duckdb: { text: doubled("'"), name: doubled('"') },
  trino: { text: doubled("'"), name: doubled('"') },
  // Their texts know backslashes, which no prefix has.
  redshift: { text: doubled("'"), name: doubled('"') },
  snowflake: { text: doubled("'"), name: doubled('"') },
  clickhouse: { text: escaped("'"), name: escaped('`') },
  bigquery: { text: escaped("'"), name: escaped('`') },
  // Also the tables of Athena, whose views are those of Trino.
  spark: { text: escaped("'"), name: doubled('`') },
} as const;

/** A string of Python is written like one of JSON. */
const python = (text: string): string => JSON.stringify(text);

/**
 * Programs that read the current rows of an export, each filled in with its bucket, prefix, format and columns. All follow
 * the manifests: a listing of the bucket has files of older generations too. `since` in them limits a program to intervals that
 * were exported after a time, which is how a copy elsewhere is kept up to date.
 */
export function readingRecipes(found: ReadableExport): ReadingRecipe[] {
  // Every stored config was validated and has these fields.
  const store = found.config as unknown as Store;
  const constant = constantPrefix(store.prefix);
  const recipe: Recipe = {
    ...found,
    store,
    root: constant === '' ? '' : `${constant}/`,
    folder: manifestFolder(store.prefix, found.id),
    partitions: store.partition_by ?? [],
  };
  // DuckDB does not find keys with other characters, such as brackets and quotes.
  const isPlain = /^[\w\-./={}]*$/.test(store.prefix);
  const isBrotliText = store.compression === 'brotli' && store.file_format !== 'Parquet';
  const isParquet = store.file_format === 'Parquet';
  // In the header of CSV, polars takes two quotes for two.
  const isOddCsv = store.file_format === 'CSV' && found.columns.some(({ name }) => name.includes('"'));
  const programs: readonly (readonly [
    language: ReadingRecipe['language'],
    reader: string,
    code: string | undefined,
    isUntested?: true,
  ])[] = [
    ['sql', 'DuckDB', isBrotliText || !isPlain ? undefined : duckdb(recipe)],
    store.table_format ? ['python', 'deltalake', deltalake(recipe)] : pythonProgram(recipe),
    [
      'python',
      'polars',
      isBrotliText || isOddCsv || store.file_format === 'JSONLines' ? undefined : polars(recipe),
    ],
    ['python', 'Spark', isBrotliText ? undefined : spark(recipe)],
    ['sql', 'ClickHouse', isPlain ? clickhouse(recipe) : undefined],
    ['sql', 'Trino', isParquet ? trino(recipe) : undefined],
    ['sql', 'Athena', isParquet ? athena(recipe) : undefined, true],
    ['sql', 'BigQuery', isParquet ? bigquery(recipe) : undefined, true],
    ['sql', 'Redshift', isParquet ? redshift(recipe) : undefined, true],
    ['sql', 'Snowflake', isBrotliText ? undefined : snowflake(recipe), true],
  ];
  return programs.flatMap(([language, reader, code, isUntested]) =>
    code === undefined
      ? []
      : [
          {
            reader,
            language,
            code: withNote(recipe, reader, language === 'sql' ? '--' : '#', code),
            tested: isUntested !== true,
          },
        ],
  );
}

/** What a reader cannot tell apart or rounds. */
const limits: Readonly<
  Partial<Record<FileFormat['file_format'], Readonly<Record<string, readonly string[]>>>>
> = {
  JSONLines: {
    DuckDB: [
      'DuckDB rounds numbers inside JSON with more than 17 digits, unless they are integers of at most 20. CSV and',
      'Parquet keep them.',
    ],
    Spark: ['A JSON column whose whole value is a string comes without quotes. CSV and Parquet keep them.'],
    ClickHouse: [
      'A JSON column whose whole value is a string comes without quotes. CSV and Parquet keep them.',
    ],
  },
};

/** DuckDB's program reads the newest state of a person; the others say how. */
function withNote({ model, store }: Recipe, reader: string, comment: string, code: string): string {
  const notes = [
    ...(limits[store.file_format]?.[reader] ?? []),
    ...(model === 'events' || reader === 'DuckDB'
      ? []
      : [
          'A person has a row for each change. Of each distinct_id, keep the row with the highest',
          'person_distinct_id_version, then person_version, then _inserted_at.',
        ]),
  ];
  return code + notes.map((note) => `${comment} ${note}\n`).join('');
}

/** What readers of persons do with the states that they have read. */
const newestState = (model: Model): string =>
  model === 'events'
    ? ''
    : ` qualify row_number() over (partition by distinct_id
  order by person_distinct_id_version desc, person_version desc nulls last, _inserted_at desc) = 1`;

/** The table of an export, as readers open it. */
const tableUrl = ({ store, model }: Recipe, scheme = 's3'): string =>
  `${scheme}://${store.bucket_name}/${tableRoot(store.prefix, model)}`;

function duckdb(recipe: Recipe): string {
  const { model, columns, store, folder, partitions } = recipe;
  const { bucket_name: bucket, region, endpoint_url, use_virtual_style_addressing: isVirtual } = store;
  const endpoint = endpoint_url === null ? undefined : new URL(endpoint_url);
  const secret = [
    `key_id '<access key id>'`,
    `secret '<secret access key>'`,
    `region ${quoted.duckdb.text(region)}`,
    ...(endpoint
      ? [`endpoint ${quoted.duckdb.text(endpoint.host)}`, `use_ssl ${String(endpoint.protocol === 'https:')}`]
      : []),
    ...(endpoint && !isVirtual ? [`url_style 'path'`] : []),
  ];
  const typed = `{${columns.map(({ name, type }) => `${quoted.duckdb.name(name)}: '${types.duckdb[type]}'`).join(', ')}}`;
  const hive =
    partitions.length === 0
      ? ''
      : `, hive_partitioning = true,\n  hive_types = {${partitions.map((name) => `${name}: ${partitionTypes.duckdb[name]}`).join(', ')}}`;
  const reader = {
    JSONLines: `read_json(getvariable('files'), format = 'newline_delimited', maximum_object_size = 134217728,\n  columns = ${typed}${hive})`,
    CSV: `read_csv(getvariable('files'), auto_detect = false, header = true, delim = ',', quote = '"', escape = '"',\n  allow_quoted_nulls = false, max_line_size = 134217728, columns = ${typed}${hive})`,
    Parquet: `read_parquet(getvariable('files'), union_by_name = true${hive})`,
  }[store.file_format];
  const open = (extension: string): string => `install ${extension};\nload ${extension};\n`;
  const access = `create or replace secret exportd (type s3, ${secret.join(', ')});\n`;
  const shown = `${newestState(model)};\nselect count(*) from exported;\n`;
  if (store.table_format)
    return `${open('httpfs')}${open('delta')}${access}create or replace view exported as
from delta_scan(${quoted.duckdb.text(tableUrl(recipe))})${shown}`;
  return `${open('httpfs')}${access}set variable since = '-infinity'::timestamptz;  -- or a time: only what was exported after it
set variable files = (
  select list(${quoted.duckdb.text(`s3://${bucket}/`)} || file.key order by file.key)
  from (select created_at, unnest(files || earlier) as file
        from read_json(${quoted.duckdb.text(`s3://${bucket}/${folder}*.json`)}, maximum_object_size = 33554432, columns = {
          created_at: 'TIMESTAMPTZ', files: 'STRUCT(key VARCHAR)[]', earlier: 'STRUCT(key VARCHAR)[]'}))
  where created_at > getvariable('since'));
create or replace view exported as
from ${reader}${shown}`;
}

/** Reads the manifests in Python: `files` are the keys of the current files. */
const pythonManifests = ({ store, folder }: Recipe, packages: string): string => {
  const { bucket_name, region, endpoint_url } = store;
  const client = [
    `region_name=${python(region)}`,
    ...(endpoint_url === null ? [] : [`endpoint_url=${python(endpoint_url)}`]),
  ];
  return `import json
import boto3  # pip install ${packages}

bucket, folder = ${python(bucket_name)}, ${python(folder)}
since = ""  # or a time like "2026-11-01T00:00:00.000Z": only what was exported after it
s3 = boto3.client("s3", ${client.join(', ')})  # AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
get = lambda key: s3.get_object(Bucket=bucket, Key=key)["Body"].read()
pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=folder)
manifests = [json.loads(get(entry["Key"])) for page in pages for entry in page.get("Contents", [])]
files = [file["key"] for manifest in manifests if manifest["created_at"] > since
         for file in manifest["files"] + manifest["earlier"]]
`;
};

/** pyarrow's program; of JSON lines, one of Python alone. */
function pythonProgram(recipe: Recipe): readonly ['python', reader: string, code: string] {
  const { columns, store, partitions } = recipe;
  const { region, endpoint_url } = store;
  const hive = partitions.map((name) => `("${name}", ${partitionTypes.pyarrow[name]})`).join(', ');
  const isPartitioned = partitions.length > 0;
  const endpoint = endpoint_url === null ? undefined : new URL(endpoint_url);
  if (store.file_format === 'JSONLines') return ['python', 'Python', pythonLines(recipe)];
  const arrow = [
    `region=${python(region)}`,
    ...(endpoint
      ? [`endpoint_override=${python(endpoint.host)}`, `scheme=${python(endpoint.protocol.replace(':', ''))}`]
      : []),
  ];
  const isParquet = store.file_format === 'Parquet';
  const arrowFormat = isParquet
    ? 'format = ds.ParquetFileFormat()'
    : `texts = {name: pyarrow.string() for name in ${JSON.stringify(columns.map(({ name }) => name))}}
format = ds.CsvFileFormat(
    parse_options=csv.ParseOptions(newlines_in_values=True), read_options=csv.ReadOptions(block_size=134217728),
    convert_options=csv.ConvertOptions(
        column_types=texts, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]))`;
  const program = `${pythonManifests(recipe, 'boto3 pyarrow')}
import pyarrow, pyarrow.dataset as ds, pyarrow.fs${isParquet ? '' : ', pyarrow.csv as csv'}

${arrowFormat}
store = pyarrow.fs.S3FileSystem(${arrow.join(', ')})
${isPartitioned ? `partitions = ds.partitioning(pyarrow.schema([${hive}]), flavor="hive")\n` : ''}rows = ds.dataset([f"{bucket}/{key}" for key in files], format=format, filesystem=store${isPartitioned ? ', partitioning=partitions' : ''}).to_table()
print(rows.num_rows)
`;
  return ['python', 'pyarrow', program];
}

/** Of CSV, every value is text: types of polars would turn texts that look like numbers or times into those. */
function polars(recipe: Recipe): string {
  const { columns, store, partitions } = recipe;
  const { region, endpoint_url } = store;
  const options = [
    `"aws_region": ${python(region)}`,
    ...(endpoint_url === null ? [] : [`"aws_endpoint_url": ${python(endpoint_url)}`]),
    ...(endpoint_url?.startsWith('http:') ? [`"aws_allow_http": "true"`] : []),
  ];
  const storage = `storage_options={${options.join(', ')}}`;
  if (store.table_format)
    return `import polars  # pip install polars deltalake

# AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
rows = polars.scan_delta(${python(tableUrl(recipe))}, ${storage}).collect()
print(rows.height)
`;
  const hive = partitions.map((name) => `"${name}": ${partitionTypes.polars[name]}`).join(', ');
  const texts = `{name: polars.String for name in ${JSON.stringify(columns.map(({ name }) => name))}}`;
  const scan =
    store.file_format === 'CSV'
      ? `polars.scan_csv(urls, glob=False, schema=${texts}, ${storage})`
      : `polars.scan_parquet(urls, glob=False${hive && `, hive_schema={${hive}}, hive_partitioning=True`}, ${storage})`;
  return `${pythonManifests(recipe, 'boto3 polars')}
import polars

urls = [f"s3://{bucket}/{key}" for key in files]
rows = ${scan}.collect()
print(rows.height)
`;
}

/** The table, which has the current files without manifests. */
function deltalake(recipe: Recipe): string {
  const { region, endpoint_url } = recipe.store;
  const options = [
    `"AWS_REGION": ${python(region)}`,
    ...(endpoint_url === null ? [] : [`"AWS_ENDPOINT_URL": ${python(endpoint_url)}`]),
    ...(endpoint_url?.startsWith('http:') ? ['"AWS_ALLOW_HTTP": "true"'] : []),
  ];
  return `import deltalake  # pip install deltalake pyarrow

# AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
options = {${options.join(', ')}}
table = deltalake.DeltaTable(${python(tableUrl(recipe))}, storage_options=options)
rows = table.to_pyarrow_table()
print(rows.num_rows)
`;
}

function pythonLines(recipe: Recipe): string {
  const packages = { zstd: 'zstandard', brotli: 'brotli' }[recipe.store.compression ?? ''];
  const [imported, lines] = {
    gzip: ['import gzip', 'gzip.decompress(get(key))'],
    zstd: ['import io, zstandard', 'zstandard.ZstdDecompressor().stream_reader(io.BytesIO(get(key))).read()'],
    brotli: ['import brotli', 'brotli.decompress(get(key))'],
    none: ['', 'get(key)'],
  }[recipe.store.compression ?? 'none'] ?? ['', 'get(key)'];
  return `${pythonManifests(recipe, ['boto3', packages].filter(Boolean).join(' '))}
${imported}
import decimal

rows = [json.loads(line, parse_float=decimal.Decimal) for key in files for line in ${lines}.splitlines()]
print(len(rows))
`.replace('\n\n\n', '\n\n');
}

/** A row that Spark cannot read would otherwise be one of nulls. */
const strictly = 'mode="FAILFAST"';

function spark(recipe: Recipe): string {
  const { model, columns, store, root, folder, partitions } = recipe;
  const { bucket_name: bucket, file_format } = store;
  if (store.table_format)
    return `rows = spark.read.format("delta").load(${python(tableUrl(recipe, 's3a'))})
rows.createOrReplaceTempView(${python(model)})
print(rows.count())
`;
  const read =
    partitions.length > 0
      ? `spark.read.option("basePath", ${python(`s3a://${bucket}/${root}`)})`
      : 'spark.read';
  const schema = python(
    columns.map(({ name, type }) => `${quoted.spark.name(name)} ${types.spark[type]}`).join(', '),
  );
  const reader = {
    JSONLines: `${read}.schema(${schema}).json(files, ${strictly})`,
    CSV: `${read}.schema(${schema}).csv(
    files, header=True, multiLine=True, escape='"', emptyValue="\\0", ${strictly}).replace("\\0", "")  # no text has \\0`,
    Parquet: `${read}.parquet(*files)`,
  }[file_format];
  return `bucket, folder = ${python(bucket)}, ${python(folder)}
since = ""  # or a time like "2026-11-01T00:00:00.000Z": only what was exported after it
manifests = spark.read.option("multiLine", True).schema(
    "created_at STRING, files ARRAY<STRUCT<key: STRING>>, earlier ARRAY<STRUCT<key: STRING>>"
).json(f"s3a://{bucket}/{folder}")
keys = manifests.where(manifests.created_at > since).selectExpr("explode(concat(files.key, earlier.key)) AS key")
files = [f"s3a://{bucket}/{row.key}" for row in keys.collect()]
rows = ${reader}
rows.createOrReplaceTempView(${python(model)})
print(rows.count())
`;
}

/** It reads the keys below the prefix that manifests name. */
function clickhouse(recipe: Recipe): string {
  const { columns, store, root, folder } = recipe;
  const { bucket_name: bucket, region, endpoint_url, file_format } = store;
  const base =
    endpoint_url === null
      ? `https://s3.${region}.amazonaws.com/${bucket}/`
      : `${endpoint_url.replace(/\/+$/, '')}/${bucket}/`;
  const keys = `'<access key id>', '<secret access key>'`;
  const shown = 'select count() from exported;\n';
  if (store.table_format)
    return `create or replace view exported as
select * from deltaLake(${quoted.clickhouse.text(base + tableRoot(store.prefix, recipe.model))}, ${keys});
${shown}`;
  const format = { JSONLines: 'JSONEachRow', CSV: 'CSVWithNames', Parquet: 'Parquet' }[file_format];
  const extensions = { JSONLines: 'jsonl*', CSV: 'csv*', Parquet: 'parquet' }[file_format];
  const structure = columns
    .map(({ name, type }) => `${quoted.clickhouse.name(name)} ${types.clickhouse[type]}`)
    .join(', ');
  const settings = {
    JSONLines: "\nsettings date_time_input_format = 'best_effort'",
    CSV: "\nsettings date_time_input_format = 'best_effort', format_csv_null_representation = ''",
    Parquet: '',
  }[file_format];
  return `create or replace view exported as
select ${columns.map(({ name }) => quoted.clickhouse.name(name)).join(', ')}
from s3(${quoted.clickhouse.text(`${base}${root}**.${extensions}`)}, ${keys}, '${format}',
  ${quoted.clickhouse.text(structure)})
where _path in (
  select ${quoted.clickhouse.text(`${bucket}/`)} || file.key
  from s3(${quoted.clickhouse.text(`${base}${folder}*.json`)}, ${keys}, 'JSONEachRow',
    'created_at String, files Array(Tuple(key String)), earlier Array(Tuple(key String))')
  array join arrayConcat(files, earlier) as file
  where created_at > '')  -- or a time like '2026-11-01T00:00:00.000Z': only what was exported after it${settings};
${shown}`;
}

/** In a catalog of the Hive connector, also for a table: the connector of Delta rounds times to milliseconds. */
function trino({ id, model, columns, store, root, folder }: Recipe): string {
  const { bucket_name: bucket } = store;
  const suffix = id.slice(0, 8);
  const typed = columns.map(({ name, type }) => `${quoted.trino.name(name)} ${types.trino[type]}`);
  return `-- In a catalog of the Hive connector with hive.recursive-directories=true and hive.timestamp-precision=MICROSECONDS.
create table manifests_${suffix} (
  created_at varchar, files array(row(key varchar)), earlier array(row(key varchar)))
with (external_location = ${quoted.trino.text(`s3://${bucket}/${folder}`)}, format = 'OPENX_JSON');
create table files_${suffix} (
  ${typed.join(',\n  ')})
with (external_location = ${quoted.trino.text(`s3://${bucket}/${root}`)}, format = 'PARQUET');
create view ${model}_${suffix} as
select * from files_${suffix}
where "$path" in (
  select ${quoted.trino.text(`s3://${bucket}/`)} || key
  from manifests_${suffix} cross join unnest(files || earlier) as listed (key)
  where created_at > '');  -- or a time like '2026-11-01T00:00:00.000Z': only what was exported after it
select count(*) from ${model}_${suffix};
`;
}

/** Over a connection of BigQuery Omni, which reads S3. */
function bigquery({ id, model, columns, store, root, folder }: Recipe): string {
  const { bucket_name: bucket, region } = store;
  const suffix = id.slice(0, 8);
  const typed = columns.map(({ name, type }) => `${quoted.bigquery.name(name)} ${types.bigquery[type]}`);
  const connection = `with connection \`aws-${region}.<connection>\``;
  return `create external table <dataset>.manifests_${suffix} (
  created_at string, files array<struct<key string>>, earlier array<struct<key string>>)
${connection}
options (format = 'JSON', ignore_unknown_values = true, uris = [${quoted.bigquery.text(`s3://${bucket}/${folder}*.json`)}]);

create external table <dataset>.files_${suffix} (
  ${typed.join(',\n  ')})
${connection}
options (format = 'PARQUET', uris = [${quoted.bigquery.text(`s3://${bucket}/${root}*.parquet`)}]);

create view <dataset>.${model}_${suffix} as
select * from <dataset>.files_${suffix}
where _file_name in (
  select concat(${quoted.bigquery.text(`s3://${bucket}/`)}, file.key)
  from <dataset>.manifests_${suffix}, unnest(array_concat(files, earlier)) file);
`;
}

/** Of Redshift Spectrum, in an external schema. A value of more than 65,535 bytes is an error. */
function redshift({ id, model, columns, store, root, folder }: Recipe): string {
  const { bucket_name: bucket } = store;
  const suffix = id.slice(0, 8);
  const typed = columns.map(({ name, type }) => `${quoted.redshift.name(name)} ${types.redshift[type]}`);
  const keysOf = (list: string): string =>
    `select ${quoted.redshift.text(`s3://${bucket}/`)} || file.key from <schema>.manifests_${suffix} manifest, manifest.${list} file`;
  return `create external table <schema>.manifests_${suffix} (
  created_at varchar(30), files array<struct<key:varchar(1024)>>, earlier array<struct<key:varchar(1024)>>)
row format serde 'org.openx.data.jsonserde.JsonSerDe'
stored as textfile location ${quoted.redshift.text(`s3://${bucket}/${folder}`)};

create external table <schema>.files_${suffix} (
  ${typed.join(',\n  ')})
stored as parquet location ${quoted.redshift.text(`s3://${bucket}/${root}`)};

create view ${model}_${suffix} as
select * from <schema>.files_${suffix}
where "$path" in (
  ${keysOf('files')}
  union all ${keysOf('earlier')})
with no schema binding;
`;
}

/** Of Parquet, whose columns Athena finds by name. It reads the whole prefix, and keeps the rows of current files. */
function athena({ id, model, columns, store, root, folder, partitions }: Recipe): string {
  const { bucket_name: bucket } = store;
  const suffix = id.slice(0, 8);
  const typed = columns.map(
    ({ name, type }) => `${quoted.spark.name(name)} ${types.spark[type].toLowerCase()}`,
  );
  return `create external table manifests_${suffix} (
  created_at string, files array<struct<key:string>>, earlier array<struct<key:string>>)
row format serde 'org.openx.data.jsonserde.JsonSerDe'
location ${quoted.spark.text(`s3://${bucket}/${folder}`)};

create external table files_${suffix} (
  ${typed.join(',\n  ')})
${projectionOf(partitions)}stored as parquet
location ${quoted.spark.text(`s3://${bucket}/${root}`)}${propertiesOf(partitions, `s3://${bucket}/${store.prefix.replaceAll('{table}', model).replace(/\/$/, '')}`)};

create view ${model}_${suffix} as
select * from files_${suffix}
where "$path" in (
  select ${quoted.trino.text(`s3://${bucket}/`)} || key
  from manifests_${suffix} cross join unnest(files || earlier) as listed (key));
`;
}

const projectionOf = (partitions: Recipe['partitions']): string =>
  partitions.length === 0
    ? ''
    : `partitioned by (${partitions.map((name) => `\`${name}\` ${partitionTypes.athena[name]}`).join(', ')})\n`;

/** Partition projection: Athena computes the folders, so that nothing has to be added for new ones. */
function propertiesOf(partitions: Recipe['partitions'], location: string): string {
  if (partitions.length === 0) return '';
  const types = {
    date: { type: 'date', format: 'yyyy-MM-dd', range: '2020-01-01,NOW+1DAYS' },
    hour: { type: 'integer', range: '0,23', digits: '2' },
  };
  const properties = [
    ['projection.enabled', 'true'],
    ...partitions.flatMap((name) =>
      Object.entries(types[name]).map(([property, value]) => [`projection.${name}.${property}`, value]),
    ),
    ['storage.location.template', [location, ...partitions.map((name) => `${name}=\${${name}}`)].join('/')],
  ];
  return `\ntblproperties (\n  ${properties.map(([name = '', value = '']) => `${quoted.spark.text(name)} = ${quoted.spark.text(value)}`).join(',\n  ')})`;
}

function snowflake({ id, model, columns, store, root }: Recipe): string {
  const { bucket_name: bucket, file_format } = store;
  const suffix = id.slice(0, 8);
  const format = {
    JSONLines: 'type = json',
    CSV: `type = csv, parse_header = false, skip_header = 1, field_optionally_enclosed_by = '"'`,
    Parquet: 'type = parquet',
  }[file_format];
  const selected = columns.map(({ name, type }, index) => {
    const value = file_format === 'CSV' ? `$${index + 1}` : `$1:${quoted.snowflake.name(name)}`;
    const read =
      type === 'json' && file_format !== 'JSONLines'
        ? `parse_json(${value})`
        : `${value}::${types.snowflake[type]}`;
    return `${read} as ${quoted.snowflake.name(name)}`;
  });
  return `create stage bucket_${suffix} url = ${quoted.snowflake.text(`s3://${bucket}/${root}`)} storage_integration = <integration>;
create file format manifest_${suffix} type = json;
create file format file_${suffix} ${format};

create view ${model}_${suffix} as
select ${selected.join(',\n  ')}
from @bucket_${suffix} (file_format => file_${suffix})
where metadata$filename in (
  select listed.value:key::string
  from @bucket_${suffix}/_manifests/${id}/ (file_format => manifest_${suffix}) manifest,
    lateral flatten(input => array_cat(manifest.$1:files, manifest.$1:earlier)) listed);
`;
}
