import { mkdirSync } from 'node:fs';
import type { ProgramSpec } from '../child_processes.ts';
import type { DataFolder, Secrets } from '../data_folder.ts';
import type { ServerProgram } from './find_server.ts';
import type { Archive } from './archive.ts';

const version = 'v1.8.0';

const release = (platform: string, sha256: string): Archive => ({
  url: `https://github.com/versity/versitygw/releases/download/${version}/versitygw_${version}_${platform}.tar.gz`,
  sha256,
  format: 'tar.gz',
  executable: `versitygw_${version}_${platform}/versitygw`,
});

/** A Go file with a subcommand that does nothing, in place of one that exportd does not use. */
const emptyCommand = (packageName: string, functionName: string) =>
  `package ${packageName}\n\nimport "github.com/urfave/cli/v2"\n\n` +
  `func ${functionName}() *cli.Command { return &cli.Command{Name: "${functionName}", Hidden: true} }\n`;

/** A Go file with a constructor that fails, in place of the client of another service. */
const absentClient = (packageName: string, functionName: string, type: string, rest = '') =>
  `package ${packageName}\n\nimport "errors"\n\nfunc ${functionName}(...any) (${type}, error) {\n` +
  `\treturn nil, errors.New("${functionName} is not built in")\n}\n${rest}`;

// What other files of these packages use.
const vaultConfig =
  '\ntype VaultConfig struct {\n\tEndpointURL, Namespace, SecretStoragePath, SecretStorageNamespace, AuthMethod string\n' +
  '\tAuthNamespace, MountPath, RootToken, RoleID, RoleSecret, ServerCert, ClientCert, ClientCertKey string\n}\n';
const sequencer = '\nfunc genSequencer() string { return "" }\n';

/** An S3 server that stores objects as files. */
export const objectStoreServer: ServerProgram = {
  name: 'versitygw',
  title: 'the S3 server versitygw',
  version,
  // The README of the local stack says where these checksums come from.
  releases: {
    'linux-x64': release('Linux_x86_64', '2ba2c734d10d2c4e651d03182cb4b246656bc735a2f282db7b0b73fba6073467'),
    'linux-arm64': release('Linux_arm64', 'b34051d33f5a9c457f790896acb7bd7d7e15ad8d92efb70616b924f37e401910'),
    'darwin-x64': release(
      'Darwin_x86_64',
      '104bd978e80ef0173554cfd8630ccc5bac24b00da440510b60365a3b6b6ab134',
    ),
    'darwin-arm64': release(
      'Darwin_arm64',
      '4953096f65a9c0d62ab184fb6b2ba7c2435229205cf00a56cb62cd4bf6b216ca',
    ),
  },
  addressVariable: 'S3_ENDPOINT',
  build: {
    module: 'github.com/versity/versitygw',
    folder: 'cmd/versitygw',
    version,
    minutes: 1,
    // Its tests of other servers, its other backends, and clients of services that exportd does not use take half of the CPU
    // time of a build.
    replacements: {
      'cmd/versitygw/test.go': emptyCommand('main', 'testCommand'),
      'cmd/internal/gwcli/azure.go': emptyCommand('gwcli', 'AzureCommand'),
      'cmd/internal/gwcli/plugin.go': emptyCommand('gwcli', 'PluginCommand'),
      'cmd/internal/gwcli/s3.go': emptyCommand('gwcli', 'S3Command'),
      'cmd/internal/gwcli/scoutfs.go': emptyCommand('gwcli', 'ScoutfsCommand'),
      'auth/iam_vault.go': absentClient('auth', 'NewVaultIAMService', 'IAMService'),
      'auth/iam_ldap.go': absentClient('auth', 'NewLDAPService', 'IAMService'),
      'auth/iam_s3_object.go': absentClient('auth', 'NewS3', 'IAMService'),
      'iamapi/storage/vault.go': absentClient('storage', 'NewVault', 'Storer', vaultConfig),
      's3event/kafka.go': absentClient('s3event', 'InitKafkaEventService', 'S3EventSender', sequencer),
      's3event/nats.go': absentClient('s3event', 'InitNatsEventService', 'S3EventSender'),
      's3event/rabbitmq.go': absentClient('s3event', 'InitRabbitmqEventService', 'S3EventSender'),
      'metrics/dogstats.go': absentClient('metrics', 'newDogStatsd', 'publisher'),
      'metrics/statsd.go': absentClient('metrics', 'newStatsd', 'publisher'),
    },
  },
};

/** Region of the S3 server. */
export const objectStoreRegion = 'us-east-1';
const healthPath = '/-/health';

/**
 * How to run the S3 server on the loopback address.
 * @param attributes Where it stores the metadata of objects: in extended attributes, or in separate files if the file
 *   system has none.
 */
export function objectStoreProgram(
  command: string,
  folder: DataFolder,
  port: number,
  secrets: Pick<Secrets, 's3AccessKeyId' | 's3SecretAccessKey'>,
  attributes: 'extended' | 'files',
): ProgramSpec {
  const objects = folder.inside('s3');
  // Its name must not begin with that of the other folder: versitygw then takes it for a part of it.
  const attributesFolder = folder.inside('object-attributes');
  for (const path of attributes === 'extended' ? [objects] : [objects, attributesFolder])
    mkdirSync(path, { recursive: true, mode: 0o700 });
  return {
    name: 's3',
    command,
    args: [
      '--port',
      `127.0.0.1:${String(port)}`,
      '--region',
      objectStoreRegion,
      '--health',
      healthPath,
      '--quiet',
      '--keep-alive',
      'posix',
      ...(attributes === 'files' ? ['--sidecar', attributesFolder] : []),
      objects,
    ],
    // Its heap is so small that it would collect it after every few requests.
    env: {
      GOGC: '400',
      ...process.env,
      ROOT_ACCESS_KEY_ID: secrets.s3AccessKeyId,
      ROOT_SECRET_ACCESS_KEY: secrets.s3SecretAccessKey,
    },
    stopSignal: 'SIGTERM',
  };
}

/** Whether the S3 server is ready. */
export async function isObjectStoreReady(endpoint: string): Promise<boolean> {
  const response = await fetch(endpoint + healthPath, { signal: AbortSignal.timeout(2_000) });
  return response.ok;
}
