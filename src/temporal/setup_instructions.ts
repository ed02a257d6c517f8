import type { Settings } from '../config/settings.ts';
import { searchAttributeNames } from './search_attributes.ts';
import { taskQueues } from './task_queues.ts';

/** What an operator has to do in a Temporal namespace, and what else is useful there. */
export interface SetupInstructions {
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
