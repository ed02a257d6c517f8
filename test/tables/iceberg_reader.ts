import { GetObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { decodeAvro } from '../../src/tables/avro.ts';
import type { TestBucket } from '../setup/bucket.ts';
import type { CatalogTable, RestCatalog } from './rest_catalog.ts';

interface Entry {
  readonly status: number;
  readonly data_file: {
    readonly file_path: string;
    readonly partition: object;
    readonly record_count: number;
    readonly lower_bounds: readonly { readonly key: number; readonly value: Buffer }[] | null;
  };
}

/**
 * Reads an Iceberg table of the catalog by the rules of its specification.
 * @param key of the table in the catalog: `namespace/table`
 */
export function createIcebergReader({ client, bucket }: TestBucket, catalog: RestCatalog, key: string) {
  const limits = { bytes: 1e8, values: 1e7 };
  const table = (): CatalogTable => {
    const found = catalog.tables.get(key);
    if (!found) throw new Error(`The catalog has no table ${key}.`);
    return found;
  };
  const read = async (path: string): Promise<Buffer> => {
    const Key = path.replace(`s3://${bucket}/`, '');
    const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key }));
    return Buffer.from((await Body?.transformToByteArray()) ?? []);
  };
  const current = (id = table()['current-snapshot-id']) =>
    table().snapshots.find((snapshot) => snapshot['snapshot-id'] === id);
  const manifests = async (
    snapshot = current(),
  ): Promise<{ manifest_path: string; partition_spec_id: number; partitions: object[] | null }[]> =>
    snapshot
      ? (decodeAvro(await read(snapshot['manifest-list']), limits).records as unknown as Awaited<
          ReturnType<typeof manifests>
        >)
      : [];
  const entries = async (snapshot = current()): Promise<Entry[]> => {
    const found: Entry[] = [];
    for (const { manifest_path } of await manifests(snapshot))
      found.push(...(decodeAvro(await read(manifest_path), limits).records as unknown as Entry[]));
    return found;
  };
  const live = async (snapshot = current()): Promise<Entry[]> =>
    (await entries(snapshot)).filter(({ status }) => status !== 2);
  const fileOf = async (path: string) => {
    const bytes = await read(path);
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
  };
  return {
    table,
    current,
    entries,
    live,
    manifests,
    /** The run, generation, and number of added and removed files of each snapshot, in their order. */
    commits: () =>
      table().snapshots.map(({ summary }) => ({
        run_id: summary['exportd.run-id'],
        generation: summary['exportd.generation'],
        adds: Number(summary['added-data-files'] ?? 0),
        removes: Number(summary['deleted-data-files'] ?? 0),
      })),
    keysBelow: async (prefix: string): Promise<string[]> => {
      const { Contents = [] } = await client.send(
        new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix }),
      );
      return Contents.map(({ Key = '' }) => Key);
    },
    /** The ids of the columns of a file by their names. */
    fieldIds: async (path: string): Promise<Record<string, number | undefined>> => {
      const { schema } = await parquetMetadataAsync(await fileOf(path));
      return Object.fromEntries(schema.slice(1).map(({ name, field_id }) => [name, field_id]));
    },
    /** All rows of the table. */
    rows: async (): Promise<Record<string, unknown>[]> => {
      const rows: Record<string, unknown>[] = [];
      for (const { data_file } of await live())
        rows.push(...(await parquetReadObjects({ file: await fileOf(data_file.file_path), compressors })));
      return rows;
    },
  };
}
