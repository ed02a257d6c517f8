import { keepPorts } from '../local_stack/ports.ts';
import { keepSecrets } from '../local_stack/secrets.ts';
import { stackEnvironment } from '../local_stack/stack_environment.ts';
import type { StackEnvironment } from '../local_stack/stack_file.ts';
import type { ScratchStack } from './scratch_stack.ts';

/**
 * The settings of exportd's own processes on a scratch stack.
 * @param name tells the task queues of several measurements apart.
 */
export async function exportdEnvironment(
  { folder, databaseUrl, temporal }: ScratchStack,
  name: string,
): Promise<{ readonly baseUrl: string; readonly environment: StackEnvironment }> {
  const { http: port } = await keepPorts(folder.inside('ports.json'), ['http']);
  const { encryptionKeys } = keepSecrets(folder);
  const environment = {
    ...stackEnvironment({ databaseUrl, temporal, httpPort: port }, encryptionKeys, false),
    SOURCE_DATABASE_URL: databaseUrl,
    EXPORTD_HOST: '127.0.0.1',
    // Its own, whoever else works in the namespace.
    EXPORTD_TASK_QUEUE_PREFIX: `bench-${String(process.pid)}-${name}`,
  };
  return { baseUrl: `http://127.0.0.1:${String(port)}`, environment };
}

/** Options of Node that keep a CPU profile in the folder; none without a folder. */
export const profilingOptions = (folder: string | undefined): readonly string[] =>
  // Node makes the folder.
  folder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${folder}`];
