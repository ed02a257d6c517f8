import { handlerOf, type JobDependencies, type JobHandler, type JobKind } from '../jobs/jobs.ts';
import { testS3, type TestStep } from './bucket_test.ts';
import { parseS3Config } from './config.ts';
import { locationOf } from './bucket_location.ts';
import { storeTraits } from './store_traits.ts';
import { openSealed, type SealedConfig } from './sealed_config.ts';

/** To open the config and to clean up, in addition to the steps. */
const overheadMs = 4_000;

/** What is tested. */
export type DestinationTestParameters = Pick<SealedConfig, 'destination_type' | 'config'> & {
  /** The index of the step that is wanted; all without it. */
  readonly step?: number;
};

/** The test of a config. Its target is the export for which the secrets are sealed, which may not exist yet. */
export const destinationTestJob: JobKind<DestinationTestParameters, { readonly steps: readonly TestStep[] }> =
  {
    name: 'destination_test',
    workflowType: 'batchExportDestinationTest',
    summary: 'Test of a destination',
    limit: null,
    attempts: 1,
    timeoutMs: ({ EXPORTD_DESTINATION_TEST_TIMEOUT }) => EXPORTD_DESTINATION_TEST_TIMEOUT + overheadMs,
    isKept: false,
  };

/** Tests a config, and stores the traits that the test finds. @throws SecretUnreadable */
export const createDestinationTestHandler = ({
  pool,
  keyRing,
  settings,
}: Pick<JobDependencies, 'pool' | 'keyRing' | 'settings'>): JobHandler =>
  handlerOf(destinationTestJob, async ({ team_id, target, parameters, secrets }) => {
    const { config } = openSealed(keyRing, target, { ...parameters, secrets });
    const parsed = parseS3Config(config, settings);
    const { steps, traits } = await testS3(parsed, settings, parameters.step);
    if (Object.values(traits).some((trait) => trait !== null))
      await storeTraits(pool, { team_id, location: locationOf(parsed) }, traits);
    return { steps };
  });
