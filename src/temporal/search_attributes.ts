import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import proto from '@temporalio/proto';
import { searchAttributes } from '../../workflows/activity_options.ts';
import type { Settings } from '../config/settings.ts';
import { isForbidden, isInvalidRequest } from '../failures/grpc_errors.ts';
import type { ClientConnection } from './connections.ts';
import { taskQueues } from './task_queues.ts';

/** The names of exportd's search attributes. All have the type Keyword. */
export const searchAttributeNames: readonly string[] = Object.values(searchAttributes).map(
  ({ name }) => name,
);

const { INDEXED_VALUE_TYPE_KEYWORD: keyword } = proto.temporal.api.enums.v1.IndexedValueType;
const pollMs = 100;
/** A server makes new attributes usable within seconds; a longer rejection has another reason. */
const timeoutMs = 60_000;

/** A namespace that lacks search attributes, which exportd may not register. An operator has to. */
export class SearchAttributesMissing extends Error {
  override readonly name = 'SearchAttributesMissing';

  constructor(namespace: string, reason: string) {
    super(
      `The Temporal namespace ${namespace} lacks search attributes of exportd, and ${reason}. Run "exportd temporal setup" as an operator, or register what "exportd temporal setup --print" shows.`,
    );
  }
}

type Connected = Pick<ClientConnection, 'client' | 'connection'>;

/**
 * Waits until exportd's search attributes are usable, since the server rejects starts of workflows with an unknown one.
 * Registers those that are missing, unless that is left to the operator.
 * @throws SearchAttributesMissing when they are missing and may not be registered
 * @throws ServiceError of @temporalio/client when Temporal does not respond, or rejects them for another reason or too long
 */
export async function ensureSearchAttributes(
  connected: Connected,
  settings: Pick<Settings, 'EXPORTD_REGISTER_SEARCH_ATTRIBUTES'>,
  signal: AbortSignal,
): Promise<void> {
  const { client } = connected;
  const { namespace } = client.options;
  // Needs no permission of an operator, unlike their list.
  if (await areUsable(client)) return;
  if (!settings.EXPORTD_REGISTER_SEARCH_ATTRIBUTES)
    throw new SearchAttributesMissing(namespace, 'EXPORTD_REGISTER_SEARCH_ATTRIBUTES is false');
  try {
    await registerSearchAttributes(connected, signal);
  } catch (error) {
    if (isForbidden(error))
      throw new SearchAttributesMissing(namespace, 'Temporal does not permit exportd to register them');
    throw error;
  }
}

/**
 * Registers the missing search attributes and waits until they are usable. The server needs a moment for that.
 * @returns The names that were missing.
 * @throws ServiceError of @temporalio/client as above. It is PERMISSION_DENIED without the permissions of an operator.
 */
export async function registerSearchAttributes(
  { client, connection }: Connected,
  signal: AbortSignal,
): Promise<string[]> {
  const { namespace } = client.options;
  const { operatorService } = connection;
  const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
  const missing = searchAttributeNames.filter((name) => !(name in customAttributes));
  if (missing.length > 0)
    await operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing.map((name) => [name, keyword])),
    });
  await waitUntilUsable(client, performance.now() + timeoutMs, signal);
  return missing;
}

/** Whether the server knows them all. It rejects a query with an unknown name as invalid. */
async function areUsable(client: Client): Promise<boolean> {
  try {
    await countAny(client);
    return true;
  } catch (error) {
    if (isInvalidRequest(error)) return false;
    throw error;
  }
}

async function waitUntilUsable(client: Client, deadline: number, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await countAny(client);
      return;
    } catch (error) {
      if (!isInvalidRequest(error) || performance.now() > deadline) throw error;
    }
    await wait(pollMs, undefined, { signal });
  }
}

const countAny = (client: Client) =>
  client.workflow.count(searchAttributeNames.map((name) => `${name} = ''`).join(' OR '));

/** What an operator has to do in a Temporal namespace, and what else is useful there. */
interface SetupInstructions {
  readonly namespace: string;
  readonly search_attributes: readonly { readonly name: string; readonly type: 'Keyword' }[];
  /** The command for a Temporal cluster. */
  readonly cluster_command: string;
  /** The command for Temporal Cloud. */
  readonly cloud_command: string;
  /** Dynamic config of a cluster, as YAML: exportd works without it, only less evenly. */
  readonly dynamic_config: string;
}

/** The instructions for the namespace and the task queues of the settings. */
export function setupInstructions(
  settings: Pick<Settings, 'TEMPORAL_NAMESPACE' | 'EXPORTD_TASK_QUEUE_PREFIX'>,
): SetupInstructions {
  const { TEMPORAL_NAMESPACE: namespace } = settings;
  const queues = Object.values(taskQueues(settings));
  const one = (setting: string, value: string): string =>
    [
      `${setting}:`,
      ...queues.flatMap((queue) => [
        `  - value: ${value}`,
        `    constraints: { namespace: ${JSON.stringify(namespace)}, taskQueueName: ${JSON.stringify(queue)} }`,
      ]),
    ].join('\n');
  return {
    namespace,
    search_attributes: searchAttributeNames.map((name) => ({ name, type: 'Keyword' })),
    cluster_command: [
      `temporal operator search-attribute create --namespace ${quoted(namespace)}`,
      ...searchAttributeNames.map((name) => `--name ${name} --type Keyword`),
    ].join(' \\\n  '),
    cloud_command: [
      `tcld namespace search-attributes add --namespace ${quoted(namespace)}`,
      ...searchAttributeNames.map((name) => `--search-attribute ${name}=Keyword`),
    ].join(' \\\n  '),
    dynamic_config: [
      '# Projects take turns.',
      one('matching.enableFairness', 'true'),
      '# Priorities apply within a partition of a task queue.',
      one('matching.numTaskqueueReadPartitions', '1'),
      one('matching.numTaskqueueWritePartitions', '1'),
    ].join('\n'),
  };
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
