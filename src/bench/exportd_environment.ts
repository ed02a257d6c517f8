import { assignPorts } from '../local_stack/ports.ts';
import { loadOrCreateSecrets } from '../local_stack/secrets.ts';
import { stackEnvironment } from '../local_stack/stack_environment.ts';
import type { StackEnvironment } from '../local_stack/stack_file.ts';
import type { ScratchStack } from './scratch_stack.ts';

/**
 * The settings of the server and the worker on a scratch stack.
 * @param name Part of the names of the task queues, unique for each measurement.
 */
export async function exportdEnvironment(
  { folder, databaseUrl, temporal }: ScratchStack,
  name: string,
): Promise<{ readonly baseUrl: string; readonly environment: StackEnvironment }> {
  const { http: port } = await assignPorts(folder.inside('ports.json'), ['http']);
  const { encryptionKeys } = loadOrCreateSecrets(folder);
  const environment = {
    ...stackEnvironment({ databaseUrl, temporal, httpPort: port }, encryptionKeys, false),
    SOURCE_DATABASE_URL: databaseUrl,
    EXPORTD_QUERY_DATABASE_URL: '',
    EXPORTD_HOST: '127.0.0.1',
    // Separate from other users of the namespace.
    EXPORTD_TASK_QUEUE_PREFIX: `bench-${String(process.pid)}-${name}`,
  };
  return { baseUrl: `http://127.0.0.1:${String(port)}`, environment };
}

/** Node options that write a CPU profile to the folder; none without a folder. */
export const profilingOptions = (folder: string | undefined): readonly string[] =>
  // Node creates the folder.
  folder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${folder}`];
