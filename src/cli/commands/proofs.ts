import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { SignedProof } from '../../http/proofs/schema.ts';
import { CliError } from '../cli_error.ts';
import { counted, printer, printList, table } from '../output.ts';
import {
  openService,
  results,
  searchOf,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';

/** What a proof states, for people. */
const proofLines = ({ proof, signature }: SignedProof): string[] => {
  const { batch_export, project, month, timezone, totals, holes, verifications, allowed } = proof;
  return [
    `${batch_export.name} (${batch_export.id}) of ${project.name}, ${month} in ${timezone}, issued ${proof.issued_at}`,
    `Signed with the key ${signature.key_id}.`,
    '',
    `${counted(totals.exported, 'interval')} exported: ${counted(totals.source_rows, 'row')} in the source, ${counted(totals.file_rows, 'row')} in ${counted(totals.files, 'file')}, ${counted(totals.rejected_rows, 'row')} rejected.`,
    totals.unequal === 0
      ? 'No interval differs from the source.'
      : `${counted(totals.unequal, 'interval')} ${totals.unequal === 1 ? 'differs' : 'differ'} from the source.`,
    totals.holes === 0 ? 'No interval is missing.' : `${counted(totals.holes, 'interval')} not exported:`,
    ...(holes.length === 0
      ? []
      : table(
          ['start', 'end', 'reason'],
          holes.map(({ start, end, reason }) => [start, end, reason]),
        )),
    ...(verifications.length === 0
      ? []
      : [`${counted(verifications.length, 'interval')} verified by people.`]),
    ...(allowed.length === 0
      ? []
      : [
          'Who allowed which rows to go:',
          ...table(
            ['interval start', 'at', 'by', 'what', 'rows before', 'rows after', 'reason'],
            allowed.map((one) => [
              ...[one.start, one.at, one.by, one.kind, one.rows_before, one.rows_after, one.reason],
            ]),
          ),
        ]),
  ];
};

/** The certificate of an erasure, signed like a proof. */
interface SignedCertificate {
  readonly certificate: Readonly<Record<string, unknown>> & { readonly erasure_id: string };
  readonly signature: SignedProof['signature'];
}

/** What a certificate states, for people. */
const certificateLines = ({ certificate, signature }: SignedCertificate): string[] => [
  `Erasure ${certificate.erasure_id} of project ${String(certificate.project_id)}: ${String(certificate.status)}, ended ${String(certificate.ended_at)}`,
  `Signed with the key ${signature.key_id}.`,
  '',
  `${counted(Number(certificate.rows_erased), 'row')} erased, ${counted(Number(certificate.objects_removed), 'object')} removed.`,
];

/** `export proof`. */
export function addExportProofCommand(exports: Command): void {
  serviceCommand(exports, 'proof', 'prove a month of a batch export; with --json as a signed document')
    .argument('<id>')
    .requiredOption('--month <month>', 'in the time zone of the export, such as 2026-10')
    .action(async (id: string, options: ServiceCommandOptions & { month: string }) => {
      const path = `batch_exports/${encodeURIComponent(id)}/proof/${searchOf({ month: options.month })}`;
      const { body } = await openService(options).call('GET', path);
      printer(options)(body, () => proofLines(body as unknown as SignedProof));
    });
}

/** `proof verify|keys`. */
export function addProofCommands(program: Command): void {
  const proofs = program.command('proof').description('signed proofs of what was exported');

  proofs
    .command('verify')
    .description('check the signature of a proof, or of the certificate of an erasure; needs no server')
    .argument('<file>', 'what "exportd export proof --json" or "exportd erase --json" has printed')
    .option('--public-key <base64>', 'the key that the sender publishes, as "exportd proof keys" lists it')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExit codes: 0 the signature is valid, 1 it is not.')
    .action(async (file: string, options: { publicKey?: string; json?: boolean }) => {
      const signed = readSigned(file);
      const { isSignedBy } = await import('../../http/proofs/signature.ts');
      const { signature } = signed;
      if (!isSignedBy('proof' in signed ? signed.proof : signed.certificate, signature))
        throw new CliError('The signature is not of this document: it was changed after it was signed.');
      const { publicKey } = options;
      if (publicKey !== undefined && publicKey !== signature.public_key)
        throw new CliError(
          `The document is signed with the key ${signature.key_id}, which is not the given one.`,
        );
      printer(options)(
        { valid: true, key_id: signature.key_id, compared_key: publicKey !== undefined },
        () => [
          ...('proof' in signed ? proofLines(signed) : certificateLines(signed)),
          '',
          publicKey === undefined
            ? `The signature is valid. Compare the public key with the one that the sender publishes: ${signature.public_key}`
            : 'The signature is valid, and of the given key.',
        ],
      );
    });

  serviceCommand(proofs, 'keys', 'list the public keys that proofs were signed with').action(
    async (options: ServiceCommandOptions) => {
      const { body } = await openService(options).call('GET', 'proof_keys/?limit=1000');
      printList(options)(results(body), (keys) =>
        table(
          ['key', 'public key', 'first used', 'current'],
          keys.map((one) => [one.key_id, one.public_key, one.first_used_at, one.is_current]),
        ),
      );
    },
  );
}

/** @throws CliError when the file is neither a proof nor a certificate */
function readSigned(file: string): SignedProof | SignedCertificate {
  let parsed: Partial<SignedProof & SignedCertificate> | null;
  try {
    parsed = JSON.parse(readFileSync(file, 'utf8')) as typeof parsed;
  } catch (error) {
    throw new CliError(`${file} is not a proof: ${error instanceof Error ? error.message : String(error)}`);
  }
  const { proof, certificate, signature } = parsed ?? {};
  if (typeof signature?.public_key === 'string') {
    if (typeof proof?.month === 'string') return { proof, signature };
    if (typeof certificate?.erasure_id === 'string') return { certificate, signature };
  }
  throw new CliError(
    `${file} is not a proof: it lacks "proof" or "signature", and is no certificate of an erasure that has ended.`,
  );
}
