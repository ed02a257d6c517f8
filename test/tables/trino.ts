import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { programPath } from '../setup/programs.ts';
import { waitFor } from '../setup/wait_for.ts';

/** A Trino server. */
interface Trino {
  /** Returns the rows of a statement, by default in the catalog `exported`. */
  readonly query: (sql: string, catalog?: string, schema?: string) => Promise<unknown[][]>;
  readonly close: () => void;
}

interface Page {
  readonly nextUri?: string;
  readonly data?: unknown[][];
  readonly error?: { readonly message: string };
}

const formatProperties = (properties: Readonly<Record<string, string>>): string =>
  Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');

/**
 * Starts Trino in a folder of its own, with two catalogs over a bucket, whose metastores are its own: `exported` of Delta tables, and
 * `files` of the connector of Hive. It is ready after half a minute.
 */
export async function startTrino(
  endpoint: string,
  { accessKeyId, secretAccessKey }: { readonly accessKeyId: string; readonly secretAccessKey: string },
): Promise<Trino> {
  const folder = mkdtempSync(join(tmpdir(), 'exportd-trino-'));
  const { http: port } = await assignPorts(join(folder, 'ports.json'), ['http']);
  const address = `http://127.0.0.1:${port}`;
  mkdirSync(join(folder, 'etc/catalog'), { recursive: true });
  const data = join(folder, 'data');
  mkdirSync(data);
  const storage = {
    'hive.metastore': 'file',
    'fs.native-local.enabled': 'true',
    'local.location': data,
    'fs.native-s3.enabled': 'true',
    's3.endpoint': endpoint,
    's3.region': 'us-east-1',
    's3.path-style-access': 'true',
    's3.aws-access-key': accessKeyId,
    's3.aws-secret-key': secretAccessKey,
  };
  const files = {
    'jvm.config': '-Xmx1G\n-XX:+UseSerialGC\n',
    'node.properties': formatProperties({
      'node.environment': 'test',
      'node.id': 'test',
      'node.data-dir': data,
    }),
    'config.properties': formatProperties({
      coordinator: 'true',
      'node-scheduler.include-coordinator': 'true',
      'http-server.http.port': String(port),
      'discovery.uri': address,
      'query.max-memory': '300MB',
      'query.max-memory-per-node': '300MB',
      'memory.heap-headroom-per-node': '200MB',
    }),
    'catalog/exported.properties': formatProperties({
      'connector.name': 'delta_lake',
      'hive.metastore.catalog.dir': 'local:///metastore',
      'delta.register-table-procedure.enabled': 'true',
      ...storage,
    }),
    'catalog/files.properties': formatProperties({
      'connector.name': 'hive',
      'hive.metastore.catalog.dir': 'local:///metastore_of_files',
      // What the program that exportd prints asks for.
      'hive.recursive-directories': 'true',
      'hive.timestamp-precision': 'MICROSECONDS',
      ...storage,
    }),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, 'etc', name), text);
  const server: ChildProcess = spawn(
    await programPath('trino'),
    ['run', `--etc-dir=${join(folder, 'etc')}`],
    {
      stdio: 'ignore',
    },
  );
  const close = () => {
    server.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  const read = async (url: string, init?: RequestInit): Promise<Page> =>
    (await (await fetch(url, init)).json()) as Page;
  /** Undefined while no node of a server that has just started has its catalog. */
  const tryQuery = async (sql: string, catalog: string, schema: string): Promise<unknown[][] | undefined> => {
    const headers = { 'x-trino-user': 'test', 'x-trino-catalog': catalog, 'x-trino-schema': schema };
    let page = await read(`${address}/v1/statement`, { method: 'POST', body: sql, headers });
    const rows: unknown[][] = [];
    for (;;) {
      if (page.error?.message.startsWith('No nodes available')) return undefined;
      if (page.error) throw new Error(page.error.message);
      rows.push(...(page.data ?? []));
      if (page.nextUri === undefined) return rows;
      page = await read(page.nextUri);
    }
  };
  const query = (sql: string, catalog = 'exported', schema = 'lake'): Promise<unknown[][]> =>
    waitFor(() => tryQuery(sql, catalog, schema), 'Trino has a node for its catalog');
  try {
    await waitFor(
      async () => {
        if (server.exitCode !== null) throw new Error(`Trino ended with ${server.exitCode}.`);
        const info = await fetch(`${address}/v1/info`).catch(() => undefined);
        return info?.ok === true && !((await info.json()) as { starting: boolean }).starting;
      },
      'Trino has started',
      300_000,
    );
  } catch (error) {
    close();
    throw error;
  }
  return { query, close };
}
