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
  readonly name: string;
  readonly image: string;
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly envFrom?: readonly { readonly secretRef: { readonly name: string } }[];
  readonly resources: object;
  readonly securityContext: object;
}

interface Rule {
  readonly ports?: readonly { readonly port: number }[];
  readonly to?: readonly {
    readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] };
  }[];
}

interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly replicas?: number;
    readonly policyTypes?: readonly string[];
    readonly egress?: readonly Rule[];
    readonly template: {
      readonly spec: {
        readonly containers: readonly Container[];
        readonly initContainers?: readonly Container[];
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

const least = {
  'secrets.shared': 'shared',
  'secrets.server': 'server-keys',
  'secrets.worker': 'worker-keys',
};
const all = {
  ...least,
  'image.digest': `sha256:${'a'.repeat(64)}`,
  'networkPolicy.privateNetworks[0]': '10.20.0.0/16',
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
    .filter(([, value]) => value !== 'true' && value !== 'false')
    .map(([name, value]) => `${name}=${value}`)
    .join(','),
  ...Object.entries(values)
    .filter(([, value]) => value === 'true' || value === 'false')
    .flatMap(([name, value]) => ['--set', `${name}=${value}`]),
];

/** The resources that the chart renders with these values. */
async function render(values: Readonly<Record<string, string>>): Promise<Resource[]> {
  const { stdout } = await run(helm, ['template', 'exportd', chart, ...flags(values)]);
  return parseAllDocuments(stdout)
    .map((document) => document.toJS() as Resource | null)
    .filter((resource) => resource !== null);
}

const containersOf = ({
  containers,
  initContainers = [],
}: Resource['spec']['template']['spec']): Container[] => [...containers, ...initContainers];

const workloads = (resources: readonly Resource[]): Resource[] =>
  resources.filter(({ kind }) => kind === 'Deployment' || kind === 'Job');

describe('the Helm chart', () => {
  it.each([
    ['the least values', least],
    ['everything switched on', all],
  ])('passes helm lint with %s', async (_case, values) => {
    await expect(run(helm, ['lint', '--strict', chart, ...flags(values)])).resolves.toMatchObject({
      stdout: expect.stringContaining('1 chart(s) linted, 0 chart(s) failed'),
    });
  });

  it.each(['shared', 'server', 'worker'])('asks for the secret of %s', async (name) => {
    const { [`secrets.${name}`]: _, ...others } = least as Record<string, string>;
    await expect(run(helm, ['template', 'exportd', chart, ...flags(others)])).rejects.toThrow(name);
  });

  it('gives the key that decrypts secrets to workers only', async () => {
    const secretsOf = ({ envFrom = [] }: Container) => envFrom.map(({ secretRef }) => secretRef.name);
    const found = workloads(await render(least)).flatMap(({ metadata, spec }) =>
      containersOf(spec.template.spec).map((container) => [
        metadata.name,
        container.name,
        secretsOf(container),
      ]),
    );
    expect(found).toEqual([
      ['exportd-server', 'server', ['shared', 'server-keys']],
      ['exportd-worker', 'worker', ['shared', 'worker-keys']],
      ['exportd-migrate', 'query-role', ['shared', 'server-keys']],
      ['exportd-migrate', 'migrate', ['shared']],
    ]);
  });

  it('limits the memory of every container', async () => {
    for (const { spec } of workloads(await render(least)))
      for (const { resources } of containersOf(spec.template.spec))
        expect(resources).toMatchObject({ limits: { memory: expect.any(String) } });
  });

  it('sets up the role of queries after the migrations, unless that is switched off', async () => {
    const job = async (values: Readonly<Record<string, string>>) =>
      (await render(values)).find(({ kind }) => kind === 'Job')?.spec.template.spec;
    expect(await job(least)).toMatchObject({
      initContainers: [{ args: ['migrate'] }],
      containers: [{ args: ['query', 'setup'] }],
    });
    const without = await job({ ...least, 'migrate.queryRole': 'false' });
    expect(without).toMatchObject({ containers: [{ args: ['migrate'] }] });
    expect(without).not.toHaveProperty('initContainers');
  });

  it('runs an image by its digest', async () => {
    for (const { spec } of workloads(await render(all)))
      for (const { image } of containersOf(spec.template.spec))
        expect(image).toMatch(/^exportd@sha256:a{64}$/);
  });

  it('lets no pod reach link-local addresses, and only workers the internet and the listed networks', async () => {
    const policies = (await render(all)).filter(({ kind }) => kind === 'NetworkPolicy');
    expect(policies.map(({ metadata }) => metadata.name).toSorted()).toEqual([
      'exportd-migrate',
      'exportd-server',
      'exportd-worker',
    ]);
    for (const { metadata, spec } of policies) {
      expect(spec.policyTypes).toEqual(['Ingress', 'Egress']);
      const rules = spec.egress ?? [];
      const blocks = rules.flatMap(({ to = [] }) => to.flatMap(({ ipBlock }) => ipBlock ?? []));
      const linkLocal = { '0.0.0.0/0': '169.254.0.0/16', '::/0': 'fe80::/10' };
      const open = blocks.filter(({ cidr, except = [] }) =>
        Object.entries(linkLocal).some(([all, local]) => cidr === all && !except.includes(local)),
      );
      expect(open).toEqual([]);
      // Also names are asked of somewhere in particular.
      expect(rules.filter(({ to = [] }) => to.length === 0)).toEqual([]);
      const isWorker = metadata.name === 'exportd-worker';
      expect(blocks.some(({ cidr }) => cidr === '10.20.0.0/16')).toBe(isWorker);
      expect(rules.flatMap(({ ports = [] }) => ports.map(({ port }) => port)).includes(443)).toBe(isWorker);
    }
    expect(
      (await render({ ...least, 'networkPolicy.enabled': 'false' })).map(({ kind }) => kind),
    ).not.toContain('NetworkPolicy');
  });

  it('renders a server, workers and migrations', async () => {
    const resources = await render(least);
    expect(resources.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort()).toEqual([
      'Deployment exportd-server',
      'Deployment exportd-worker',
      'Job exportd-migrate',
      'NetworkPolicy exportd-migrate',
      'NetworkPolicy exportd-server',
      'NetworkPolicy exportd-worker',
      'PodDisruptionBudget exportd-server',
      'Service exportd',
      'ServiceAccount exportd',
    ]);
  });

  it('runs every process without rights and with a file system that is read-only', async () => {
    for (const { spec } of workloads(await render(least))) {
      const pod = spec.template.spec;
      expect(pod).toMatchObject({ enableServiceLinks: false, securityContext: { runAsNonRoot: true } });
      for (const { securityContext } of containersOf(pod))
        expect(securityContext).toMatchObject({
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
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
