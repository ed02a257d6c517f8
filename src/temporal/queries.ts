import type { Capability, CapabilityDependencies } from './capability.ts';
import { createQueryClient } from './clients/query_client.ts';
import { createQueryReconcilers } from './reconcilers/queries.ts';

/** Answers queries in the background. */
export const createQueries = ({
  client,
  settings,
}: CapabilityDependencies): Pick<Capability, 'reconcilers'> => ({
  reconcilers: createQueryReconcilers(createQueryClient(client, settings)),
});
