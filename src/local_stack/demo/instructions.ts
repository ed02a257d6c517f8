import type { DataFolder } from '../data_folder.ts';
import { demoFilePath, type DemoFile, type ServiceFile } from './demo_file.ts';

/** Compares the revenue in the events with the charges in the warehouse table. */
export const revenueQuery =
  'select c.currency, count() as charges, sum(c.amount) as charged, sum(e.properties.revenue) as tracked from stripe.charges as c join events as e on e.uuid = c.event_uuid group by c.currency order by charged desc';

/** What to try next. */
export function demoInstructions(folder: DataFolder, demo: DemoFile): string {
  const project = `${demo.base_url}/api/environments/${String(demo.project_id)}`;
  return `
${addresses(folder, demo, `, bucket ${demo.bucket}`)}

Try, in another terminal:

  KEY=${demo.api_key}
  EXPORT=${project}/batch_exports/${demo.batch_export_id}
  curl -H "Authorization: Bearer $KEY" $EXPORT/
  curl -H "Authorization: Bearer $KEY" "$EXPORT/runs/?limit=5"
  curl -H "Authorization: Bearer $KEY" $EXPORT/logs/
  curl -H "Authorization: Bearer $KEY" -X POST $EXPORT/pause/
  curl -H "Authorization: Bearer $KEY" -X POST $EXPORT/unpause/
  curl -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" ${project}/query/ \\
    -d '{"query": {"kind": "DialectQuery", "query": "${revenueQuery}"}}'

${stopping}`;
}

/** The way from a database of the user to an export of it. */
export const ownSourceInstructions = (folder: DataFolder, service: ServiceFile, bucket: string): string => `
${addresses(folder, service)}
  API key         ${service.api_key}

Sign in to the console with the key and create an export. The form checks your database, drafts what it lacks and tests the
bucket. Take any S3 server, or the one above:

  Bucket          ${bucket}
  Region          us-east-1
  Endpoint URL    ${service.s3_endpoint}
  Access key      ${service.s3_access_key_id}
  Secret key      ${service.s3_secret_access_key}

${stopping}`;

const stopping = 'Press Ctrl-C to stop. npm start continues with the same data.\n';

const addresses = (folder: DataFolder, service: ServiceFile, bucket = ''): string =>
  `  Console         ${service.base_url}, sign in with the key below
  HTTP API        ${service.base_url}/api/docs
  Temporal UI     ${service.temporal_ui ?? '(see your Temporal server)'}
  Metrics         ${service.base_url}/metrics and ${service.worker_url}/metrics
  S3              ${service.s3_endpoint}${bucket}
  Keys and IDs    ${demoFilePath(folder)}
  Logs            ${folder.inside('logs')}`;
