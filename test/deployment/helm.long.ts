import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { programPath } from '../setup/programs.ts';
import { settingsOf } from './settings_of.ts';

const run = promisify(execFile);
const chart = join(import.meta.dirname, '../../.config/helm');

interface Container {
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly securityContext: object;
}

interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly replicas?: number;
    readonly template: {
      readonly spec: {
        readonly containers: readonly Container[];
        readonly terminationGracePeriodSeconds: number;
        readonly enableServiceLinks: boolean;
        readonly securityContext: object;
      };
    };
  };
}

// Long, because a machine without Helm builds it for minutes.
let helm: string;
beforeAll(async () => {
  helm = await programPath('helm');
});

const all = {
  secretName: 'secrets',
  'ingress.enabled': 'true',
  'ingress.tlsSecretName': 'certificate',
  'podMonitor.enabled': 'true',
  'keda.enabled': 'true',
  'keda.authentication': 'temporal',
  'migrate.source': 'true',
  'settings.EXPORTD_TASK_QUEUE_PREFIX': 'shop',
  'mounts[0].name': 'certificates',
  'mounts[0].mountPath': '/etc/exportd',
  'mounts[0].secret.secretName': 'certificates',
};

/** A Helm that was built from its module takes Kubernetes to be 1.20 otherwise. */
const kubernetes = ['--kube-version', '1.33.0'];

const flags = (values: Readonly<Record<string, string>>): string[] => [
  ...kubernetes,
  '--set-string',
  Object.entries(values)
    .filter(([, value]) => value !== 'true')
    .map(([name, value]) => `${name}=${value}`)
    .join(','),
  ...Object.entries(values)
    .filter(([, value]) => value === 'true')
    .flatMap(([name]) => ['--set', `${name}=true`]),
];

/** The resources that the chart renders with these values. */
async function render(values: Readonly<Record<string, string>>): Promise<Resource[]> {
  const { stdout } = await run(helm, ['template', 'exportd', chart, ...flags(values)]);
  return parseAllDocuments(stdout)
    .map((document) => document.toJS() as Resource | null)
    .filter((resource) => resource !== null);
}

const workloads = (resources: readonly Resource[]): Resource[] =>
  resources.filter(({ kind }) => kind === 'Deployment' || kind === 'Job');

describe('the Helm chart', () => {
  it.each([
    ['the least values', { secretName: 'secrets' }],
    ['everything switched on', all],
  ])('passes helm lint with %s', async (_case, values) => {
    await expect(run(helm, ['lint', '--strict', chart, ...flags(values)])).resolves.toMatchObject({
      stdout: expect.stringContaining('1 chart(s) linted, 0 chart(s) failed'),
    });
  });

  it('asks for the secret', async () => {
    await expect(run(helm, ['template', 'exportd', chart, ...kubernetes])).rejects.toThrow(/secretName/);
  });

  it('renders a server, workers and migrations', async () => {
    const resources = await render({ secretName: 'secrets' });
    expect(resources.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort()).toEqual([
      'Deployment exportd-server',
      'Deployment exportd-worker',
      'Job exportd-migrate',
      'PodDisruptionBudget exportd-server',
      'Service exportd',
      'ServiceAccount exportd',
    ]);
  });

  it('runs every process without rights and with a file system that is read-only', async () => {
    for (const { spec } of workloads(await render({ secretName: 'secrets' }))) {
      expect(spec.template.spec).toMatchObject({
        enableServiceLinks: false,
        securityContext: { runAsNonRoot: true },
        containers: [{ securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false } }],
      });
    }
  });

  it('sets settings that exist, and gives processes more time to end than they take', async () => {
    for (const { kind, spec } of workloads(await render(all))) {
      const { containers, terminationGracePeriodSeconds } = spec.template.spec;
      const variables = containers[0]?.env.map(({ name, value }) => [name, value] as const) ?? [];
      const { EXPORTD_SHUTDOWN_TIMEOUT } = settingsOf(Object.fromEntries(variables));
      expect(kind === 'Job' || terminationGracePeriodSeconds * 1_000 > EXPORTD_SHUTDOWN_TIMEOUT).toBe(true);
    }
  });

  it('scales workers by the backlog of the export queue', async () => {
    const resources = await render(all);
    expect(resources.find(({ kind }) => kind === 'ScaledObject')).toMatchObject({
      spec: {
        scaleTargetRef: { name: 'exportd-worker' },
        minReplicaCount: 1,
        triggers: [
          {
            type: 'temporal',
            metadata: {
              endpoint: 'temporal-frontend.temporal.svc:7233',
              namespace: 'default',
              taskQueue: 'shop-export',
              queueTypes: 'activity',
            },
            authenticationRef: { name: 'temporal' },
          },
        ],
      },
    });
    // A number of replicas would undo the scaling with every upgrade.
    expect(resources.find(({ metadata }) => metadata.name === 'exportd-worker')?.spec).not.toHaveProperty(
      'replicas',
    );
  });
});
