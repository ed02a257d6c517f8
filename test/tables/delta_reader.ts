import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import type { TestBucket } from '../setup/bucket.ts';

/** A line of a commit, as far as the tests read it. */
interface DeltaLine {
  readonly add?: {
    readonly path: string;
    readonly stats: string;
    readonly partitionValues?: Readonly<Record<string, string>>;
    readonly tags?: Record<string, string>;
  } | null;
  readonly remove?: {
    readonly path: string;
    readonly partitionValues?: object;
    readonly deletionTimestamp?: number;
  } | null;
  readonly metaData?: {
    readonly id: string;
    readonly schemaString: string;
    readonly partitionColumns: readonly string[];
  } | null;
  readonly protocol?: object | null;
  readonly txn?: { readonly appId: string; readonly version: number } | null;
  readonly commitInfo?: { readonly run_id?: string; readonly generation?: number } | null;
}

/**
 * Reads a Delta table by the rules of its protocol, and writes to it like another writer. It knows nothing of exportd.
 * @param root the folder of the table
 */
export function createDeltaReader({ client, bucket }: TestBucket, root: string) {
  const nameOf = (version: number): string => `${root}/_delta_log/${String(version).padStart(20, '0')}`;
  const read = async (key: string): Promise<Buffer> => {
    const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: key }));
    return Buffer.from((await Body?.transformToByteArray()) ?? []);
  };
  const keysBelow = async (prefix: string): Promise<string[]> => {
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix }));
    return Contents.map(({ Key = '' }) => Key);
  };
  const put = (key: string, text: string, conditions: { IfNoneMatch?: string } = { IfNoneMatch: '*' }) =>
    client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: text, ...conditions }));
  const rowsOf = async (bytes: Buffer): Promise<Record<string, unknown>[]> =>
    parquetReadObjects({
      file: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer,
      compressors,
    });
  const linesOf = async (version: number): Promise<DeltaLine[]> =>
    (await read(`${nameOf(version)}.json`))
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as DeltaLine);
  const versions = async (): Promise<number[]> =>
    (await keysBelow(`${root}/_delta_log/`)).flatMap((key) =>
      key.endsWith('.json') ? [Number(key.slice(-25, -5))] : [],
    );

  /** The live files, from the last checkpoint on if there is one. */
  const live = async (): Promise<Map<string, NonNullable<DeltaLine['add']>>> => {
    const hint = (await keysBelow(`${root}/_delta_log/_last_checkpoint`))[0];
    const checkpoint = hint
      ? (JSON.parse((await read(hint)).toString()) as { version: number }).version
      : undefined;
    const lines: DeltaLine[] =
      checkpoint === undefined ? [] : await rowsOf(await read(`${nameOf(checkpoint)}.checkpoint.parquet`));
    const paths = lines.flatMap(({ add, remove }) => add?.path ?? remove?.path ?? []);
    if (new Set(paths).size < paths.length)
      throw new Error('A file of a checkpoint is both there and removed.');
    const newer = (await versions()).filter((version) => version > (checkpoint ?? -1));
    for (const [index, version] of newer.entries()) {
      if (version !== (checkpoint ?? -1) + 1 + index) throw new Error(`The log has a gap before ${version}.`);
      lines.push(...(await linesOf(version)));
    }
    const files = new Map<string, NonNullable<DeltaLine['add']>>();
    for (const { add, remove } of lines) {
      if (remove) files.delete(remove.path);
      if (add) files.set(add.path, add);
    }
    return files;
  };
  return {
    nameOf,
    keysBelow,
    put,
    delete: (key: string) => client.send(new DeleteObjectCommand({ Bucket: bucket, Key: key })),
    linesOf,
    versions,
    live,
    /** All rows of the table. */
    rows: async (): Promise<Record<string, unknown>[]> => {
      const rows: Record<string, unknown>[] = [];
      for (const path of (await live()).keys())
        rows.push(...(await rowsOf(await read(`${root}/${decodeURIComponent(path)}`))));
      return rows;
    },
    /** Commits as another writer does. @returns the version */
    commit: async (...lines: readonly object[]): Promise<number> => {
      const version = Math.max(-1, ...(await versions())) + 1;
      const info = { commitInfo: { timestamp: Date.now(), operation: 'OPTIMIZE', engineInfo: 'another' } };
      await put(`${nameOf(version)}.json`, [info, ...lines].map((line) => JSON.stringify(line)).join('\n'));
      return version;
    },
  };
}
