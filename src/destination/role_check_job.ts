import { handlerOf, type JobDependencies, type JobHandler, type JobKind } from '../jobs/jobs.ts';
import { parseS3Config } from './config.ts';
import { roleRefusal } from './credentials.ts';
import { openSealed, type SealedConfig } from './sealed_config.ts';

/** The check of the role of a config before it is saved. Its target is the export, which may not exist yet. */
export const roleCheckJob: JobKind<
  Pick<SealedConfig, 'destination_type' | 'config'>,
  { readonly refused: string | null }
> = {
  name: 'role_check',
  workflowType: 'batchExportRoleCheck',
  summary: 'Check of a role',
  limit: null,
  attempts: 1,
  timeoutMs: ({ EXPORTD_DESTINATION_TEST_TIMEOUT }) => EXPORTD_DESTINATION_TEST_TIMEOUT,
  isKept: false,
};

/** Says why exportd does not assume the role; null if it does, or if AWS does not say. @throws SecretUnreadable */
export const createRoleCheckHandler = ({
  keyRing,
  settings,
}: Pick<JobDependencies, 'keyRing' | 'settings'>): JobHandler =>
  handlerOf(roleCheckJob, async ({ target, parameters, secrets }) => {
    const { config } = openSealed(keyRing, target, { ...parameters, secrets });
    return { refused: await roleRefusal(parseS3Config(config, settings), settings) };
  });
