import type { Model } from '../domain/batch_export.ts';
import type { ColumnType, ExportedColumn } from '../source/row_selection.ts';
import type { FileFormat } from './formats.ts';
import { manifestFolder, type PartitionColumn, tableRoot } from './keys.ts';

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
  /** The folder of the manifests in the bucket, which ends with a slash. */
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

const sqlText = (text: string): string => `'${text.replaceAll("'", "''")}'`;
const sqlName = (name: string): string => `"${name.replaceAll('"', '""')}"`;
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
  const folder = manifestFolder(store.prefix, found.id);
  const recipe = { ...found, store, folder, partitions: store.partition_by ?? [] };
  // DuckDB does not find keys with other characters, such as brackets and quotes.
  const isPlain = /^[\w\-./={}]*$/.test(store.prefix);
  const isBrotliText = store.compression === 'brotli' && store.file_format !== 'Parquet';
  const sql = (reader: string, code: string, tested = false): ReadingRecipe => ({
    reader,
    language: 'sql',
    tested,
    code: withNote(found.model, reader, '--', code),
  });
  const script = (reader: string, code: string, tested = false): ReadingRecipe => ({
    reader,
    language: 'python',
    tested,
    code: withNote(found.model, reader, '#', code),
  });
  return [
    ...(store.table_format ? [script('deltalake', deltalake(recipe), true)] : []),
    ...(isBrotliText || !isPlain ? [] : [sql('DuckDB', duckdb(recipe), true)]),
    ...pythonPrograms(recipe).map(([reader, code]) => script(reader, code, true)),
    script('Spark', spark(recipe)),
    ...(store.file_format === 'Parquet' ? [sql('Athena', athena(recipe))] : []),
    ...(isBrotliText ? [] : [sql('Snowflake', snowflake(recipe))]),
  ];
}

/** DuckDB's program reads the newest state of a person; the others say how. */
const withNote = (model: Model, reader: string, comment: string, code: string): string =>
  model === 'events' || reader === 'DuckDB'
    ? code
    : `${code}${comment} A person has a row for each change. Of each distinct_id, keep the row with the highest\n` +
      `${comment} person_distinct_id_version, then person_version, then _inserted_at.\n`;

/** What readers of persons do with the states that they have read. */
const newestState = (model: Model): string =>
  model === 'events'
    ? ''
    : ` qualify row_number() over (partition by distinct_id
  order by person_distinct_id_version desc, person_version desc nulls last, _inserted_at desc) = 1`;

function duckdb({ model, columns, store, folder, partitions }: Recipe): string {
  const { bucket_name: bucket, region, endpoint_url, use_virtual_style_addressing: isVirtual } = store;
  const endpoint = endpoint_url === null ? undefined : new URL(endpoint_url);
  const secret = [
    `key_id '<access key id>'`,
    `secret '<secret access key>'`,
    `region ${sqlText(region)}`,
    ...(endpoint
      ? [`endpoint ${sqlText(endpoint.host)}`, `use_ssl ${String(endpoint.protocol === 'https:')}`]
      : []),
    ...(endpoint && !isVirtual ? [`url_style 'path'`] : []),
  ];
  const typed = `{${columns.map(({ name, type }) => `${sqlName(name)}: '${types.duckdb[type]}'`).join(', ')}}`;
  const hive =
    partitions.length === 0
      ? ''
      : `, hive_partitioning = true,\n  hive_types = {${partitions.map((name) => `${name}: ${partitionTypes.duckdb[name]}`).join(', ')}}`;
  const reader = {
    JSONLines: `read_json(getvariable('files'), format = 'newline_delimited', maximum_object_size = 134217728,\n  columns = ${typed}${hive})`,
    CSV: `read_csv(getvariable('files'), header = true, quote = '"', escape = '"', allow_quoted_nulls = false,\n  columns = ${typed}${hive})`,
    Parquet: `read_parquet(getvariable('files'), union_by_name = true${hive})`,
  }[store.file_format];
  return `install httpfs;
load httpfs;
create or replace secret exportd (type s3, ${secret.join(', ')});
set variable since = '-infinity'::timestamptz;  -- or a time: only what was exported after it
set variable files = (
  select list(${sqlText(`s3://${bucket}/`)} || file.key order by file.key)
  from (select created_at, unnest(files || earlier) as file
        from read_json(${sqlText(`s3://${bucket}/${folder}*.json`)}, maximum_object_size = 33554432, columns = {
          created_at: 'TIMESTAMPTZ', files: 'STRUCT(key VARCHAR)[]', earlier: 'STRUCT(key VARCHAR)[]'}))
  where created_at > getvariable('since'));
create or replace view exported as
from ${reader}${newestState(model)};
select count(*) from exported;
`;
}

/** Reads the manifests in Python: \`files\` are the keys of the current files. */
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

/** Readers with their programs in Python. */
function pythonPrograms(recipe: Recipe): (readonly [reader: string, code: string])[] {
  const { columns, store, partitions } = recipe;
  const { region, endpoint_url } = store;
  const hive = partitions.map((name) => `("${name}", ${partitionTypes.pyarrow[name]})`).join(', ');
  const hiveOptions = partitions.map((name) => `"${name}": ${partitionTypes.polars[name]}`).join(', ');
  const isPartitioned = partitions.length > 0;
  const endpoint = endpoint_url === null ? undefined : new URL(endpoint_url);
  if (store.file_format === 'JSONLines') return [['Python', pythonLines(recipe)]];
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
format = ds.CsvFileFormat(parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=csv.ConvertOptions(
    column_types=texts, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]))`;
  const pyarrow = `${pythonManifests(recipe, 'boto3 pyarrow')}
import pyarrow, pyarrow.dataset as ds, pyarrow.fs${isParquet ? '' : ', pyarrow.csv as csv'}

${arrowFormat}
store = pyarrow.fs.S3FileSystem(${arrow.join(', ')})
${isPartitioned ? `partitions = ds.partitioning(pyarrow.schema([${hive}]), flavor="hive")\n` : ''}rows = ds.dataset([f"{bucket}/{key}" for key in files], format=format, filesystem=store${isPartitioned ? ', partitioning=partitions' : ''}).to_table()
print(rows.num_rows)
`;
  if (!isParquet) return [['pyarrow', pyarrow]];
  const options = [
    `"aws_region": ${python(region)}`,
    ...(endpoint_url === null ? [] : [`"aws_endpoint_url": ${python(endpoint_url)}`]),
    ...(endpoint?.protocol === 'http:' ? [`"aws_allow_http": "true"`] : []),
  ];
  const polars = `${pythonManifests(recipe, 'boto3 polars')}
import polars

urls = [f"s3://{bucket}/{key}" for key in files]
rows = polars.scan_parquet(urls, glob=False${isPartitioned ? `, hive_schema={${hiveOptions}}, hive_partitioning=True` : ''}, storage_options={${options.join(', ')}}).collect()
print(rows.height)
`;
  return [
    ['pyarrow', pyarrow],
    ['polars', polars],
  ];
}

/** The table, which has the current files without manifests. */
function deltalake({ model, store }: Recipe): string {
  const { bucket_name, region, endpoint_url, prefix } = store;
  const options = [
    `"AWS_REGION": ${python(region)}`,
    ...(endpoint_url === null ? [] : [`"AWS_ENDPOINT_URL": ${python(endpoint_url)}`]),
    ...(endpoint_url?.startsWith('http:') ? ['"AWS_ALLOW_HTTP": "true"'] : []),
  ];
  return `import deltalake  # pip install deltalake pyarrow

# AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
options = {${options.join(', ')}}
table = deltalake.DeltaTable(${python(`s3://${bucket_name}/${tableRoot(prefix, model)}`)}, storage_options=options)
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
rows = [json.loads(line) for key in files for line in ${lines}.splitlines()]
print(len(rows))
`.replace('\n\n\n', '\n\n');
}

function spark({ model, columns, store, folder, partitions }: Recipe): string {
  const { bucket_name: bucket, file_format } = store;
  const root = folder.slice(0, folder.indexOf('_manifests/'));
  const read =
    partitions.length > 0
      ? `spark.read.option("basePath", ${python(`s3a://${bucket}/${root}`)})`
      : 'spark.read';
  const schema = python(columns.map(({ name, type }) => `\`${name}\` ${types.spark[type]}`).join(', '));
  const reader = {
    JSONLines: `${read}.schema(${schema}).json(files)`,
    CSV: `${read}.schema(${schema}).csv(files, header=True, multiLine=True, escape='"')`,
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

/** Of Parquet, whose columns Athena finds by name. It reads the whole prefix, and keeps the rows of current files. */
function athena({ id, model, columns, store, folder, partitions }: Recipe): string {
  const { bucket_name: bucket } = store;
  const suffix = id.slice(0, 8);
  const root = folder.slice(0, folder.indexOf('_manifests/'));
  const typed = columns.map(({ name, type }) => `\`${name}\` ${types.spark[type].toLowerCase()}`);
  return `create external table manifests_${suffix} (
  created_at string, files array<struct<key:string>>, earlier array<struct<key:string>>)
row format serde 'org.openx.data.jsonserde.JsonSerDe'
location ${sqlText(`s3://${bucket}/${folder}`)};

create external table files_${suffix} (
  ${typed.join(',\n  ')})
${projectionOf(partitions)}stored as parquet
location ${sqlText(`s3://${bucket}/${root}`)}${propertiesOf(partitions, `s3://${bucket}/${store.prefix.replaceAll('{table}', model).replace(/\/$/, '')}`)};

create view ${model}_${suffix} as
select * from files_${suffix}
where "$path" in (
  select ${sqlText(`s3://${bucket}/`)} || file.key
  from manifests_${suffix} cross join unnest(files || earlier) as listed (file));
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
  return `\ntblproperties (\n  ${properties.map(([name = '', value = '']) => `${sqlText(name)} = ${sqlText(value)}`).join(',\n  ')})`;
}

function snowflake({ id, model, columns, store, folder }: Recipe): string {
  const { bucket_name: bucket, file_format } = store;
  const suffix = id.slice(0, 8);
  const root = folder.slice(0, folder.indexOf('_manifests/'));
  const format = {
    JSONLines: 'type = json',
    CSV: `type = csv, parse_header = false, skip_header = 1, field_optionally_enclosed_by = '"'`,
    Parquet: 'type = parquet',
  }[file_format];
  const selected = columns.map(({ name, type }, index) => {
    const value = file_format === 'CSV' ? `$${index + 1}` : `$1:${sqlName(name)}`;
    const read =
      type === 'json' && file_format !== 'JSONLines'
        ? `parse_json(${value})`
        : `${value}::${types.snowflake[type]}`;
    return `${read} as ${sqlName(name)}`;
  });
  return `create stage bucket_${suffix} url = ${sqlText(`s3://${bucket}/${root}`)} storage_integration = <integration>;
create file format manifest_${suffix} type = json;
create file format file_${suffix} ${format};

create view ${model}_${suffix} as
select ${selected.join(',\n  ')}
from @bucket_${suffix} (file_format => file_${suffix})
where metadata$filename in (
  select listed.value:key::string
  from @bucket_${suffix}/${folder.slice(root.length)} (file_format => manifest_${suffix}) manifest,
    lateral flatten(input => array_cat(manifest.$1:files, manifest.$1:earlier)) listed);
`;
}
