// Written by "npm run client" from the OpenAPI document.
/* oxlint-disable */
export interface components {
    schemas: {
        Accepted: {
            detail: string;
        };
        AcceptedCreation: {
            id: string;
            detail: string;
        };
        ApiKey: {
            id: string;
            name: string;
            /** @description The first characters of the key. */
            prefix: string;
            /** @description The owner, with whose permissions the key acts. */
            user: {
                id: number;
                email: string;
            };
            /** @description Null for a key that was created on the command line. */
            created_by: {
                id: number;
                email: string;
            } | null;
            /** @description Its projects, of those that the calling key covers. */
            projects: number[];
            scopes: components["schemas"]["Scope"][];
            /** @enum {string} */
            status: "active" | "expired" | "revoked";
            /** Format: date-time */
            created_at: string;
            /** @description Null if it does not expire. */
            expires_at: string | null;
            /** @description The minute of its last use. */
            last_used_at: string | null;
            revoked_at: string | null;
            /** @description The id of the key that it replaces. */
            rotated_from: string | null;
        };
        ApiKeyCreateInput: {
            /** @description What the key is for. */
            name: string;
            /** @description Scopes of the calling key. */
            scopes: components["schemas"]["ScopeInput"][];
            /** @description Projects of the calling key. Default: the project of the path. */
            projects?: number[];
            /** @description Default: never, or the latest time that `EXPORTD_KEY_MAX_LIFETIME` allows. */
            expires_at?: string | null;
        };
        ApiKeyRotateInput: {
            /**
             * @description How long the old key still works. 0 ends it at once.
             * @default 86400
             */
            overlap_seconds?: number;
        };
        AuditEvent: {
            id: string;
            /** Format: date-time */
            at: string;
            user: {
                id: number;
                email: string;
            } | null;
            key: {
                id: string;
                name: string;
                prefix: string;
            } | null;
            /** @description Null for the command line. */
            address: string | null;
            /** @description The user agent, or the user and host of a command. */
            client: string | null;
            /** @description Resource and verb, such as `batch_export.update`; `read` for a refused read. */
            action: string;
            /** @description The path of the object below the project; the route of a refused request. */
            object: string | null;
            /** @enum {string} */
            outcome: "done" | "accepted" | "failed" | "refused";
            /** @description The HTTP status; null for the command line. */
            status: number | null;
            /** @description The code of the error. */
            detail: string | null;
            /** @description How many equal attempts of a minute it stands for. */
            count: number;
        };
        BatchExport: {
            id: string;
            team_id: number;
            name: string;
            /** @enum {string} */
            model: "events" | "persons";
            destination: {
                type: string;
                /** @description Secret fields are never returned. */
                config: {
                    [key: string]: unknown;
                };
            };
            interval: string;
            timezone: string;
            /** @description Null for intervals of an hour or less. */
            offset_hour: number | null;
            /** @description Null for intervals of a day or less. */
            offset_day: number | null;
            paused: boolean;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            last_updated_at: string;
            last_paused_at: string | null;
            start_at: string | null;
            end_at: string | null;
            /** @description The 10 newest runs, newest first. */
            latest_runs: components["schemas"]["BatchExportRun"][];
            dialect_query: string | null;
            retention_days: number | null;
            /** @description The columns that `dialect_query` selects; null without a query, when files have the columns of the model. */
            schema: {
                fields: {
                    alias: string;
                    expression: string;
                    type: string;
                }[];
                dialect_query: string;
            } | null;
            /** @description Null if this version of exportd cannot read the schedule of the export. */
            lag: components["schemas"]["BatchExportLag"] | null;
        };
        BatchExportBackfill: {
            id: string;
            batch_export: string;
            team_id: number;
            /** Format: date-time */
            start_at: string;
            /** Format: date-time */
            end_at: string;
            /** @enum {string} */
            status: "Running" | "Paused" | "Completed" | "Cancelled";
            /** @description The run that this backfill retries; null for other backfills. */
            retry_of_run_id: string | null;
            /** @description Whether it exports only the intervals of its range whose run failed (`retry_failed`). */
            retries_failed: boolean;
            /** @description Whether exportd itself created it, to export intervals again whose rows arrived late. An export has one at a time; its range and number of runs grow while it runs. */
            is_repair: boolean;
            /** @description Whether its runs may remove rows from the bucket that the source no longer has. */
            allow_shrink: boolean;
            /** Format: date-time */
            created_at: string;
            finished_at: string | null;
            /** Format: date-time */
            last_updated_at: string;
            /** @description Null for a cancelled backfill, which has no end to progress to. */
            progress: {
                total_runs: number;
                /** @description Completed, failed, cancelled and retrying runs. */
                finished_runs: number;
                completed_runs: number;
                /** @description Runs that are Failed or Terminated, or FailedRetryable or TimedOut without another automatic retry. */
                failed_runs: number;
                cancelled_runs: number;
                /** @description Runs whose automatic retry is pending or active. */
                retrying_runs: number;
                /** @description Fraction of the runs that have ended, from 0 to 1. */
                progress: number;
                records_completed: number;
                /** @description Total records of the runs created so far. */
                records_total_count: number;
            } | null;
        };
        BatchExportCheck: {
            /** @description The fields that the request would set, such as `destination__config__prefix`. */
            changes: string[];
            /** @description Those of them that are secrets, which responses never contain. */
            secrets: string[];
        };
        BatchExportCreateInput: {
            name: string;
            /**
             * @description The rows that are exported: events by default.
             * @default events
             */
            model?: ("events" | "persons") | null;
            /**
             * @description How much time each run exports.
             * @default hour
             * @example hour
             * @example every 5 minutes
             */
            interval?: string;
            destination: {
                type: string;
                config?: ({
                    [key: string]: unknown;
                } | {
                    /** Bucket */
                    bucket_name: string;
                    /**
                     * @description The region of the bucket. Servers other than AWS often accept us-east-1.
                     * @example eu-central-1
                     * @example us-east-1
                     * @example eu-west-1
                     * @example us-west-2
                     * @example auto
                     */
                    region: string;
                    /**
                     * @description Where files are written. Variables: {year} {month} {day} {hour} {minute} {second} {data_interval_start} {data_interval_end} {table}. Dates are those of the interval's start in UTC.
                     * @example events/{year}/{month}/{day}
                     */
                    prefix: string;
                    aws_access_key_id?: string | null;
                    aws_secret_access_key?: string | null;
                    role_arn?: (string | null) | null;
                    external_id?: (string | null) | null;
                    endpoint_url?: (string | null) | null;
                    use_virtual_style_addressing?: boolean | null;
                    file_format?: ("JSONLines" | "CSV" | "Parquet") | null;
                    compression?: (string | null) | null;
                    compression_level?: (number | null) | null;
                    bloom_filters?: boolean | null;
                    max_file_size_mb?: (number | null) | null;
                    on_bad_row?: ("fail" | "reject") | null;
                    on_missing_rows?: ("keep" | "follow") | null;
                    include_events?: string[] | null;
                    exclude_events?: string[] | null;
                    filters?: {
                        /** @enum {string} */
                        type: "event" | "person" | "event_metadata" | "hogql" | "dialect";
                        key: string;
                        /** @default exact */
                        operator?: ("exact" | "is_not" | "in" | "not_in" | "is_cleaned_path_exact" | "icontains" | "not_icontains" | "regex" | "not_regex" | "gt" | "gte" | "lt" | "lte" | "min" | "max" | "between" | "not_between" | "is_set" | "is_not_set" | "is_date_exact" | "is_date_before" | "is_date_after") | null;
                        value?: unknown;
                    }[] | null;
                    encryption?: (("AES256" | "aws:kms") | null) | null;
                    kms_key_id?: (string | null) | null;
                }) | null;
            };
            /** @description An IANA time zone, in which days, weeks and months start. Null is UTC. */
            timezone?: string | null;
            /** @description For intervals of a day or longer: the hour that they start at. */
            offset_hour?: number | null;
            /** @description For a week: days after its Sunday, at most 6. For a month: days after its first. */
            offset_day?: number | null;
            /** @description A paused export starts no runs. */
            paused?: boolean | null;
            /** @description When it was last paused. exportd sets it. */
            last_paused_at?: string | null;
            /** @description Intervals that end before this time are not exported. */
            start_at?: string | null;
            /** @description Intervals that end after this time are not exported. */
            end_at?: string | null;
            /**
             * SQL
             * @description A SELECT over the model that defines the columns and rows of the files. Without it, all rows of the model are exported unchanged.
             */
            dialect_query?: string | null;
            /** @description The days after which lifecycle rules of the bucket delete what was exported. Set it for rules that were added after objects were written: what is older and missing is expired, not lost. */
            retention_days?: number | null;
            readonly id?: unknown;
            readonly team_id?: unknown;
            readonly created_at?: unknown;
            readonly last_updated_at?: unknown;
            readonly latest_runs?: unknown;
            readonly schema?: unknown;
            readonly lag?: unknown;
        };
        BatchExportDryRun: {
            /** @constant */
            dry_run: true;
            /**
             * Format: date-time
             * @description The start of the first whole interval.
             */
            start_at: string;
            /**
             * Format: date-time
             * @description The end of the last whole interval.
             */
            end_at: string;
            intervals: number;
            /** @description Rows that the source has for these intervals now; null when counting timed out. */
            rows: number | null;
            /** @description Why the rows were not counted, or null. */
            detail: string | null;
        };
        BatchExportGap: {
            /** Format: date-time */
            data_interval_start: string;
            /** Format: date-time */
            data_interval_end: string;
            /** @description The interval's newest run, which can be retried. */
            run_id: string;
            /**
             * @description The status of that run.
             * @enum {string}
             */
            status: "Cancelled" | "Completed" | "ContinuedAsNew" | "Failed" | "FailedRetryable" | "Terminated" | "TimedOut" | "Running" | "Starting";
        };
        BatchExportInterval: {
            /** Format: date-time */
            data_interval_start: string;
            /** Format: date-time */
            data_interval_end: string;
            /** @description 1, or the number of intervals of a range without runs: `due`, `paused` or `excluded`. */
            intervals: number;
            status: components["schemas"]["BatchExportIntervalStatus"];
            /** @description Why it is a gap, failed, paused or excluded. */
            reason: string | null;
            /** @description The latest error of the newest run. */
            latest_error: string | null;
            /** @description The newest run. */
            run_id: string | null;
            /** @description The run that wrote the current manifest. */
            manifest_run_id: string | null;
            /** @description The 10 newest runs, newest first. */
            run_ids: string[];
            /** @description The generation of the current manifest; null without one. */
            generation: number | null;
            /** @description Rows in the files of the current manifest. */
            rows: number | null;
            rejected_rows: number | null;
            bytes: number | null;
            files: number | null;
            /** @description Files of earlier generations that stay and that readers do not need. */
            kept_files: number | null;
            /** @description Files of earlier generations that stay and that readers of persons need. */
            earlier_files: number | null;
            /** @description The rows of the source after they were exported. */
            source_fingerprint: {
                hash: string;
                rows: number;
                /** @description Sum of the hashes of the rows' ids modulo 2^64. */
                sum: string;
            } | null;
            /** @description The rows of the files and the rejected rows. */
            bucket_fingerprint: {
                hash: string;
                rows: number;
                /** @description Sum of the hashes of the rows' ids modulo 2^64. */
                sum: string;
            } | null;
            /** @description As in the current manifest. */
            settled: boolean | null;
            /** @description What followed once the transactions had ended that an unsettled run did not wait for. */
            settling_outcome: ("same_rows" | "exported_again" | "no_late_rows" | "source_expired" | "not_exported_again") | null;
            /** @description When the run of the current manifest completed. */
            completed_at: string | null;
            /** @description When the bucket deletes objects of the manifest, by its lifecycle rule or `retention_days`. */
            expires_at: string | null;
            /** @description The last comparison of the current manifest with the source. */
            comparison: {
                /** Format: date-time */
                compared_at: string;
                /** @enum {string} */
                outcome: "equal" | "rows_added" | "rows_missing" | "both" | "source_expired";
                bucket_rows: number;
                source_rows: number;
                /** @description At least this many rows are only in the source. */
                added_rows: number;
                /** @description At least this many rows are only in the bucket. */
                missing_rows: number;
                /** @description Who has acknowledged the differences, when and why. Null if nobody has, and once a comparison finds others. */
                acknowledgement: {
                    by: string;
                    /** Format: date-time */
                    at: string;
                    reason: string;
                } | null;
            } | null;
            /** @description Why the interval is held; null if it is not. */
            held: {
                /** @description Rows of the bucket that the source no longer has. */
                missing_rows: number;
                bucket_rows: number;
                source_rows: number;
            } | null;
            /** @description Keys of the newest run that other objects in the bucket had. */
            taken_keys: number;
            /** @description Whether the runs of the manifest are older than `EXPORTD_HISTORY_RETENTION`, so that only this entry is left of them. It is not compared with the source any more, unless it is verified. */
            history_collapsed: boolean;
        };
        /**
         * @description * `exported` - its manifest has the rows that the source had
         *     * `running` - a run is active
         *     * `held` - its newest run would have removed rows from the bucket, so it stopped; the earlier manifest stays
         *     * `unsettled` - exported while transactions of the source were open; exportd follows up
         *     * `failed` - its newest run failed; an automatic retry follows, or an earlier manifest stays
         *     * `gap` - no manifest, and no automatic retry follows; `reason` is the status of its newest run
         *     * `due` - ended, and the schedule has not created its run yet
         *     * `paused` - ended while the export was paused
         *     * `excluded` - ended before `start_at` or after `end_at`; `reason` says which
         *     * `expired` - a lifecycle rule of the bucket has deleted its objects; exported again only on a person's request
         * @enum {string}
         */
        BatchExportIntervalStatus: "exported" | "running" | "held" | "unsettled" | "failed" | "gap" | "due" | "paused" | "excluded" | "expired";
        BatchExportLag: {
            /** @description Ended intervals of the schedule without a Completed run, including those without a run, and all gaps. Excludes intervals that the schedule skips: those that ended while paused, before start_at or after end_at. */
            intervals: number;
            /** @description The total length of those intervals. */
            seconds: number;
            /** @description The end of the newest interval that has a Completed run. */
            last_completed_interval_end: string | null;
            /** @description Intervals whose runs have all ended, none Completed or held, and none with a pending automatic retry. The 100 newest, newest first. Retry the run or backfill the interval. */
            gaps: components["schemas"]["BatchExportGap"][];
        };
        BatchExportRun: {
            id: string;
            status: components["schemas"]["BatchExportRunStatus"];
            /** @description What an active run waits for, such as an unavailable bucket; null when it does not wait. */
            status_detail: string | null;
            /** @description Number of records exported so far. */
            records_completed: number;
            /** @description How the run failed; while it is active, what a step is retried after and until when. */
            latest_error: string | null;
            /** Format: date-time */
            data_interval_start: string;
            /** Format: date-time */
            data_interval_end: string;
            /** @description Opaque cursor that may be used to resume. */
            cursor: string | null;
            /** Format: date-time */
            created_at: string;
            finished_at: string | null;
            /** Format: date-time */
            last_updated_at: string;
            records_total_count: number | null;
            batch_export: string;
            /** @description Bytes of the completed files and of the parts uploaded since. */
            bytes: number;
            files: number;
            /** @description Counts how often the interval's files were written, from 1; null before the export starts. */
            generation: number | null;
            manifest_key: string | null;
            /** @description The backfill or retry that created the run; null for runs of the schedule. */
            backfill_id: string | null;
            /** @description Whether its request allows it to remove rows from the bucket that the source no longer has. */
            allow_shrink: boolean;
            /** @description Link to the run's workflow in the Temporal UI. */
            temporal_ui: string | null;
        };
        /**
         * @description * `Cancelled` - Cancelled
         *     * `Completed` - Completed
         *     * `ContinuedAsNew` - Continued As New
         *     * `Failed` - Failed
         *     * `FailedRetryable` - Failed Retryable
         *     * `Terminated` - Terminated
         *     * `TimedOut` - Timedout
         *     * `Running` - Running
         *     * `Starting` - Starting
         * @enum {string}
         */
        BatchExportRunStatus: "Cancelled" | "Completed" | "ContinuedAsNew" | "Failed" | "FailedRetryable" | "Terminated" | "TimedOut" | "Running" | "Starting";
        BatchExportUpdateInput: {
            name?: string;
            /**
             * @description The rows that are exported: events by default.
             * @default events
             */
            model?: ("events" | "persons") | null;
            /**
             * @description How much time each run exports.
             * @default hour
             * @example hour
             * @example every 5 minutes
             */
            interval?: string;
            destination?: {
                type?: string;
                config?: ({
                    [key: string]: unknown;
                } | {
                    /** Bucket */
                    bucket_name?: string;
                    /**
                     * @description The region of the bucket. Servers other than AWS often accept us-east-1.
                     * @example eu-central-1
                     * @example us-east-1
                     * @example eu-west-1
                     * @example us-west-2
                     * @example auto
                     */
                    region?: string;
                    /**
                     * @description Where files are written. Variables: {year} {month} {day} {hour} {minute} {second} {data_interval_start} {data_interval_end} {table}. Dates are those of the interval's start in UTC.
                     * @example events/{year}/{month}/{day}
                     */
                    prefix?: string;
                    aws_access_key_id?: string | null;
                    aws_secret_access_key?: string | null;
                    role_arn?: (string | null) | null;
                    external_id?: (string | null) | null;
                    endpoint_url?: (string | null) | null;
                    use_virtual_style_addressing?: boolean | null;
                    file_format?: ("JSONLines" | "CSV" | "Parquet") | null;
                    compression?: (string | null) | null;
                    compression_level?: (number | null) | null;
                    bloom_filters?: boolean | null;
                    max_file_size_mb?: (number | null) | null;
                    on_bad_row?: ("fail" | "reject") | null;
                    on_missing_rows?: ("keep" | "follow") | null;
                    include_events?: string[] | null;
                    exclude_events?: string[] | null;
                    filters?: {
                        /** @enum {string} */
                        type: "event" | "person" | "event_metadata" | "hogql" | "dialect";
                        key: string;
                        /** @default exact */
                        operator?: ("exact" | "is_not" | "in" | "not_in" | "is_cleaned_path_exact" | "icontains" | "not_icontains" | "regex" | "not_regex" | "gt" | "gte" | "lt" | "lte" | "min" | "max" | "between" | "not_between" | "is_set" | "is_not_set" | "is_date_exact" | "is_date_before" | "is_date_after") | null;
                        value?: unknown;
                    }[] | null;
                    encryption?: (("AES256" | "aws:kms") | null) | null;
                    kms_key_id?: (string | null) | null;
                }) | null;
            };
            /** @description An IANA time zone, in which days, weeks and months start. Null is UTC. */
            timezone?: string | null;
            /** @description For intervals of a day or longer: the hour that they start at. */
            offset_hour?: number | null;
            /** @description For a week: days after its Sunday, at most 6. For a month: days after its first. */
            offset_day?: number | null;
            /** @description A paused export starts no runs. */
            paused?: boolean | null;
            /** @description When it was last paused. exportd sets it. */
            last_paused_at?: string | null;
            /** @description Intervals that end before this time are not exported. */
            start_at?: string | null;
            /** @description Intervals that end after this time are not exported. */
            end_at?: string | null;
            /**
             * SQL
             * @description A SELECT over the model that defines the columns and rows of the files. Without it, all rows of the model are exported unchanged.
             */
            dialect_query?: string | null;
            /** @description The days after which lifecycle rules of the bucket delete what was exported. Set it for rules that were added after objects were written: what is older and missing is expired, not lost. */
            retention_days?: number | null;
            readonly id?: unknown;
            readonly team_id?: unknown;
            readonly created_at?: unknown;
            readonly last_updated_at?: unknown;
            readonly latest_runs?: unknown;
            readonly schema?: unknown;
            readonly lag?: unknown;
        };
        CreatedApiKey: {
            id: string;
            name: string;
            /** @description The first characters of the key. */
            prefix: string;
            /** @description The owner, with whose permissions the key acts. */
            user: {
                id: number;
                email: string;
            };
            /** @description Null for a key that was created on the command line. */
            created_by: {
                id: number;
                email: string;
            } | null;
            /** @description Its projects, of those that the calling key covers. */
            projects: number[];
            scopes: components["schemas"]["Scope"][];
            /** @enum {string} */
            status: "active" | "expired" | "revoked";
            /** Format: date-time */
            created_at: string;
            /** @description Null if it does not expire. */
            expires_at: string | null;
            /** @description The minute of its last use. */
            last_used_at: string | null;
            revoked_at: string | null;
            /** @description The id of the key that it replaces. */
            rotated_from: string | null;
            /** @description Returned only once: store it. */
            key: string;
        };
        CreatedBatchExportBackfill: {
            id: string;
            batch_export: string;
            team_id: number;
            /** Format: date-time */
            start_at: string;
            /** Format: date-time */
            end_at: string;
            /** @enum {string} */
            status: "Running" | "Paused" | "Completed" | "Cancelled";
            /** @description The run that this backfill retries; null for other backfills. */
            retry_of_run_id: string | null;
            /** @description Whether it exports only the intervals of its range whose run failed (`retry_failed`). */
            retries_failed: boolean;
            /** @description Whether exportd itself created it, to export intervals again whose rows arrived late. An export has one at a time; its range and number of runs grow while it runs. */
            is_repair: boolean;
            /** @description Whether its runs may remove rows from the bucket that the source no longer has. */
            allow_shrink: boolean;
            /** Format: date-time */
            created_at: string;
            finished_at: string | null;
            /** Format: date-time */
            last_updated_at: string;
            /** @description Null for a cancelled backfill, which has no end to progress to. */
            progress: {
                total_runs: number;
                /** @description Completed, failed, cancelled and retrying runs. */
                finished_runs: number;
                completed_runs: number;
                /** @description Runs that are Failed or Terminated, or FailedRetryable or TimedOut without another automatic retry. */
                failed_runs: number;
                cancelled_runs: number;
                /** @description Runs whose automatic retry is pending or active. */
                retrying_runs: number;
                /** @description Fraction of the runs that have ended, from 0 to 1. */
                progress: number;
                records_completed: number;
                /** @description Total records of the runs created so far. */
                records_total_count: number;
            } | null;
            /** @description The same as `id`, as runs call it. */
            backfill_id: string;
        };
        CreatedWebhook: {
            id: string;
            /** @description With `batch_export:write` the whole URL, where the server can decrypt it; else its origin and `…`, since its path is often a credential. */
            url: string;
            events: ("run.failed" | "run.retries_exhausted" | "run.held" | "run.key_taken" | "interval.published" | "interval.expired" | "batch_export.paused" | "batch_export.recovered" | "backfill.paused")[];
            /**
             * @description `json`: id, type, time and data of the event. `slack`: a message for an incoming webhook of Slack.
             * @enum {string}
             */
            format: "json" | "slack";
            /** @description Send only notifications of this batch export; null for all. */
            batch_export: string | null;
            enabled: boolean;
            /** Format: date-time */
            created_at: string;
            /** @description The latest delivery attempt. */
            last_delivery: {
                /** Format: date-time */
                at: string;
                /** @description The status code of the response; null without one. */
                status: number | null;
                detail: string;
            } | null;
            /** @description Returned only once: store it. */
            secret: string;
        };
        Dashboard: {
            id: number;
            name: string;
            description: string;
            pinned: boolean;
            /** Format: date-time */
            created_at: string;
            /** @description Null when the user no longer exists. */
            created_by: components["schemas"]["User"] | null;
            is_shared: boolean;
            deleted: boolean;
            /** @enum {string} */
            creation_mode: "default" | "template" | "duplicate";
            tags: string[];
            restriction_level: components["schemas"]["DashboardRestrictionLevel"];
            /** @description The stricter of the dashboard's level and its project's level. */
            effective_restriction_level: components["schemas"]["DashboardRestrictionLevel"];
            /** @description 37 when the user of the key may edit the dashboard, else 21. */
            effective_privilege_level: components["schemas"]["DashboardPrivilegeLevel"];
            /** @description The access level of the user of the key. The creator is a manager. Other users have their level in `access_controls`, else `default_access_level`, which is at most `viewer` when only collaborators may edit. */
            user_access_level: components["schemas"]["DashboardAccessLevel"];
        };
        /** @enum {string} */
        DashboardAccessLevel: "none" | "viewer" | "editor" | "manager";
        /** @enum {string} */
        DashboardAccessLevelInput: "none" | "viewer" | "editor" | "manager";
        DashboardCreateInput: {
            name: string;
            description?: string | null;
            pinned?: boolean | null;
            tags?: string[] | null;
            restriction_level?: components["schemas"]["DashboardRestrictionLevelInput"] | null;
            default_access_level?: components["schemas"]["DashboardAccessLevelInput"] | null;
            access_controls?: {
                /** @description The id or UUID of a user. */
                user: number | string;
                access_level: components["schemas"]["DashboardAccessLevelInput"];
            }[] | null;
            readonly id?: unknown;
            readonly created_at?: unknown;
            readonly created_by?: unknown;
            readonly is_shared?: unknown;
            readonly creation_mode?: unknown;
            readonly effective_restriction_level?: unknown;
            readonly effective_privilege_level?: unknown;
            readonly user_access_level?: unknown;
            readonly deleted?: unknown;
        };
        DashboardDetail: {
            id: number;
            name: string;
            description: string;
            pinned: boolean;
            /** Format: date-time */
            created_at: string;
            /** @description Null when the user no longer exists. */
            created_by: components["schemas"]["User"] | null;
            is_shared: boolean;
            deleted: boolean;
            /** @enum {string} */
            creation_mode: "default" | "template" | "duplicate";
            tags: string[];
            restriction_level: components["schemas"]["DashboardRestrictionLevel"];
            /** @description The stricter of the dashboard's level and its project's level. */
            effective_restriction_level: components["schemas"]["DashboardRestrictionLevel"];
            /** @description 37 when the user of the key may edit the dashboard, else 21. */
            effective_privilege_level: components["schemas"]["DashboardPrivilegeLevel"];
            /** @description The access level of the user of the key. The creator is a manager. Other users have their level in `access_controls`, else `default_access_level`, which is at most `viewer` when only collaborators may edit. */
            user_access_level: components["schemas"]["DashboardAccessLevel"];
            /** @description The access level of users that `access_controls` does not list. */
            default_access_level: components["schemas"]["DashboardAccessLevel"];
            /** @description The collaborators, without the creator. */
            access_controls: {
                /** @description UUID of the user. */
                user: string;
                access_level: components["schemas"]["DashboardAccessLevel"];
            }[];
        };
        /**
         * @description * `21` - Can view dashboard
         *     * `37` - Can edit dashboard
         * @enum {integer}
         */
        DashboardPrivilegeLevel: 21 | 37;
        /**
         * @description * `21` - Everyone in the project can edit
         *     * `37` - Only those invited to this dashboard can edit
         * @enum {integer}
         */
        DashboardRestrictionLevel: 21 | 37;
        /**
         * @description * `21` - Everyone in the project can edit
         *     * `37` - Only those invited to this dashboard can edit
         * @enum {integer}
         */
        DashboardRestrictionLevelInput: 21 | 37;
        DashboardUpdateInput: {
            name?: string;
            description?: string | null;
            pinned?: boolean | null;
            tags?: string[] | null;
            restriction_level?: components["schemas"]["DashboardRestrictionLevelInput"] | null;
            default_access_level?: components["schemas"]["DashboardAccessLevelInput"] | null;
            access_controls?: {
                /** @description The id or UUID of a user. */
                user: number | string;
                access_level: components["schemas"]["DashboardAccessLevelInput"];
            }[] | null;
            readonly id?: unknown;
            readonly created_at?: unknown;
            readonly created_by?: unknown;
            readonly is_shared?: unknown;
            readonly creation_mode?: unknown;
            readonly effective_restriction_level?: unknown;
            readonly effective_privilege_level?: unknown;
            readonly user_access_level?: unknown;
            deleted?: boolean;
        };
        DestinationTest: {
            steps: {
                name: string;
                description: string;
                result: {
                    /**
                     * @description A step is skipped when a step that it depends on failed.
                     * @enum {string}
                     */
                    status: "Passed" | "Failed" | "Skipped";
                    /** @description What is wrong and how it affects exports. */
                    message: string | null;
                    /** @description How the store behaves, where the step found out something. */
                    details?: string;
                };
            }[];
        };
        DestinationTestNewInput: {
            name?: string;
            /**
             * @description The rows that are exported: events by default.
             * @default events
             */
            model?: ("events" | "persons") | null;
            /**
             * @description How much time each run exports.
             * @default hour
             * @example hour
             * @example every 5 minutes
             */
            interval?: string;
            destination: {
                type: string;
                config?: ({
                    [key: string]: unknown;
                } | {
                    /** Bucket */
                    bucket_name: string;
                    /**
                     * @description The region of the bucket. Servers other than AWS often accept us-east-1.
                     * @example eu-central-1
                     * @example us-east-1
                     * @example eu-west-1
                     * @example us-west-2
                     * @example auto
                     */
                    region: string;
                    /**
                     * @description Where files are written. Variables: {year} {month} {day} {hour} {minute} {second} {data_interval_start} {data_interval_end} {table}. Dates are those of the interval's start in UTC.
                     * @example events/{year}/{month}/{day}
                     */
                    prefix: string;
                    aws_access_key_id?: string | null;
                    aws_secret_access_key?: string | null;
                    role_arn?: (string | null) | null;
                    external_id?: (string | null) | null;
                    endpoint_url?: (string | null) | null;
                    use_virtual_style_addressing?: boolean | null;
                    file_format?: ("JSONLines" | "CSV" | "Parquet") | null;
                    compression?: (string | null) | null;
                    compression_level?: (number | null) | null;
                    bloom_filters?: boolean | null;
                    max_file_size_mb?: (number | null) | null;
                    on_bad_row?: ("fail" | "reject") | null;
                    on_missing_rows?: ("keep" | "follow") | null;
                    include_events?: string[] | null;
                    exclude_events?: string[] | null;
                    filters?: {
                        /** @enum {string} */
                        type: "event" | "person" | "event_metadata" | "hogql" | "dialect";
                        key: string;
                        /** @default exact */
                        operator?: ("exact" | "is_not" | "in" | "not_in" | "is_cleaned_path_exact" | "icontains" | "not_icontains" | "regex" | "not_regex" | "gt" | "gte" | "lt" | "lte" | "min" | "max" | "between" | "not_between" | "is_set" | "is_not_set" | "is_date_exact" | "is_date_before" | "is_date_after") | null;
                        value?: unknown;
                    }[] | null;
                    encryption?: (("AES256" | "aws:kms") | null) | null;
                    kms_key_id?: (string | null) | null;
                }) | null;
            };
            /** @description An IANA time zone, in which days, weeks and months start. Null is UTC. */
            timezone?: string | null;
            /** @description For intervals of a day or longer: the hour that they start at. */
            offset_hour?: number | null;
            /** @description For a week: days after its Sunday, at most 6. For a month: days after its first. */
            offset_day?: number | null;
            /** @description A paused export starts no runs. */
            paused?: boolean | null;
            /** @description When it was last paused. exportd sets it. */
            last_paused_at?: string | null;
            /** @description Intervals that end before this time are not exported. */
            start_at?: string | null;
            /** @description Intervals that end after this time are not exported. */
            end_at?: string | null;
            /**
             * SQL
             * @description A SELECT over the model that defines the columns and rows of the files. Without it, all rows of the model are exported unchanged.
             */
            dialect_query?: string | null;
            /** @description The days after which lifecycle rules of the bucket delete what was exported. Set it for rules that were added after objects were written: what is older and missing is expired, not lost. */
            retention_days?: number | null;
            readonly id?: unknown;
            readonly team_id?: unknown;
            readonly created_at?: unknown;
            readonly last_updated_at?: unknown;
            readonly latest_runs?: unknown;
            readonly schema?: unknown;
            readonly lag?: unknown;
        };
        DestinationTestOfInput: {
            name?: string;
            /**
             * @description The rows that are exported: events by default.
             * @default events
             */
            model?: ("events" | "persons") | null;
            /**
             * @description How much time each run exports.
             * @default hour
             * @example hour
             * @example every 5 minutes
             */
            interval?: string;
            destination?: {
                type?: string;
                config?: ({
                    [key: string]: unknown;
                } | {
                    /** Bucket */
                    bucket_name?: string;
                    /**
                     * @description The region of the bucket. Servers other than AWS often accept us-east-1.
                     * @example eu-central-1
                     * @example us-east-1
                     * @example eu-west-1
                     * @example us-west-2
                     * @example auto
                     */
                    region?: string;
                    /**
                     * @description Where files are written. Variables: {year} {month} {day} {hour} {minute} {second} {data_interval_start} {data_interval_end} {table}. Dates are those of the interval's start in UTC.
                     * @example events/{year}/{month}/{day}
                     */
                    prefix?: string;
                    aws_access_key_id?: string | null;
                    aws_secret_access_key?: string | null;
                    role_arn?: (string | null) | null;
                    external_id?: (string | null) | null;
                    endpoint_url?: (string | null) | null;
                    use_virtual_style_addressing?: boolean | null;
                    file_format?: ("JSONLines" | "CSV" | "Parquet") | null;
                    compression?: (string | null) | null;
                    compression_level?: (number | null) | null;
                    bloom_filters?: boolean | null;
                    max_file_size_mb?: (number | null) | null;
                    on_bad_row?: ("fail" | "reject") | null;
                    on_missing_rows?: ("keep" | "follow") | null;
                    include_events?: string[] | null;
                    exclude_events?: string[] | null;
                    filters?: {
                        /** @enum {string} */
                        type: "event" | "person" | "event_metadata" | "hogql" | "dialect";
                        key: string;
                        /** @default exact */
                        operator?: ("exact" | "is_not" | "in" | "not_in" | "is_cleaned_path_exact" | "icontains" | "not_icontains" | "regex" | "not_regex" | "gt" | "gte" | "lt" | "lte" | "min" | "max" | "between" | "not_between" | "is_set" | "is_not_set" | "is_date_exact" | "is_date_before" | "is_date_after") | null;
                        value?: unknown;
                    }[] | null;
                    encryption?: (("AES256" | "aws:kms") | null) | null;
                    kms_key_id?: (string | null) | null;
                }) | null;
            };
            /** @description An IANA time zone, in which days, weeks and months start. Null is UTC. */
            timezone?: string | null;
            /** @description For intervals of a day or longer: the hour that they start at. */
            offset_hour?: number | null;
            /** @description For a week: days after its Sunday, at most 6. For a month: days after its first. */
            offset_day?: number | null;
            /** @description A paused export starts no runs. */
            paused?: boolean | null;
            /** @description When it was last paused. exportd sets it. */
            last_paused_at?: string | null;
            /** @description Intervals that end before this time are not exported. */
            start_at?: string | null;
            /** @description Intervals that end after this time are not exported. */
            end_at?: string | null;
            /**
             * SQL
             * @description A SELECT over the model that defines the columns and rows of the files. Without it, all rows of the model are exported unchanged.
             */
            dialect_query?: string | null;
            /** @description The days after which lifecycle rules of the bucket delete what was exported. Set it for rules that were added after objects were written: what is older and missing is expired, not lost. */
            retention_days?: number | null;
            readonly id?: unknown;
            readonly team_id?: unknown;
            readonly created_at?: unknown;
            readonly last_updated_at?: unknown;
            readonly latest_runs?: unknown;
            readonly schema?: unknown;
            readonly lag?: unknown;
        };
        DraftedSql: {
            /** @description A query in the SQL dialect that compiles for the project. */
            sql: string;
        };
        Error: {
            type: string;
            code: string;
            detail: string;
            attr: string | null;
        };
        JsonValueInput: unknown;
        LogEntry: {
            /** Format: date-time */
            timestamp: string;
            /** @enum {string} */
            level: "DEBUG" | "INFO" | "WARNING" | "ERROR";
            message: string;
            /** @description The run of the line; null when it is about the batch export itself. */
            instance_id: string | null;
            /** @description The batch export. */
            log_source_id: string;
        };
        Project: {
            id: number;
            name: string;
            timezone: string;
            /** @enum {string} */
            week_start_day: "sunday" | "monday";
            /** @description The `sts:ExternalId` that roles of the project demand, for destinations with `role_arn`. */
            external_id: string;
        };
        QueryRequestInput: {
            /** @description The query to run: its `kind` and the fields of that kind. */
            query: {
                kind: string;
            } & {
                [key: string]: unknown;
            };
            /** @description Controls caching and whether the query runs in the background. `blocking` (the default) and `force_blocking` calculate synchronously; `async`, `lazy_async` and `force_async` calculate in the background; `force_cache` never calculates. The `force_` modes other than `force_cache` ignore cached results. */
            refresh?: ("blocking" | "async" | "lazy_async" | "force_blocking" | "force_async" | "force_cache") | null;
            /** @description True is the same as `refresh: async`. */
            async?: boolean | null;
            /** @description An id chosen by the client, to retrieve the status of the query or cancel it. */
            client_query_id?: string | null;
            /** @description Dates that replace those of the query, and property filters that are added to its own. */
            filters_override?: {
                date_from?: string | null;
                date_to?: string | null;
                properties?: components["schemas"]["JsonValueInput"][] | null;
            } | null;
            /** @description Values of the query's variables, keyed by the variable's id or code name. */
            variables_override?: {
                [key: string]: {
                    variableId?: string | null;
                    code_name?: string | null;
                    value?: components["schemas"]["JsonValueInput"];
                    isNull?: boolean | null;
                };
            } | null;
        };
        QueryResponse: {
            /** @description Rows or series; one JSON value for query kinds without rows. */
            results?: unknown[] | {
                [key: string]: unknown;
            };
            columns?: string[] | null;
            types?: unknown[] | null;
            /** @description True when rows were cut. */
            hasMore?: boolean;
            limit?: number | null;
            offset?: number | null;
            /** @description The query as text of the SQL dialect. */
            dialect_query?: string | null;
            /** @description A hint about the result, such as how to get more rows. */
            notice?: string | null;
            timezone?: string;
            /** @description Seconds that the calculation took: `schema` (reading what the source has), `statements` (waiting for rows), `computation` (the rest) and `total`. */
            timings?: {
                k: string;
                t: number;
            }[];
            /** @description With `explain: true` in the query: what its statements cost in PostgreSQL, which then runs them a second time. Seconds, bytes, and the steps of the plan with their rows. */
            explain?: {
                [key: string]: unknown;
            };
            is_cached?: boolean;
            cache_key?: string;
            /** Format: date-time */
            last_refresh?: string;
            /** Format: date-time */
            next_allowed_client_refresh?: string;
            /** @description The background query that calculates the same result, if any. */
            query_status: components["schemas"]["QueryStatus"] | null;
        } & {
            [key: string]: unknown;
        };
        QueryStatus: {
            id: string;
            /** @description Whether it runs in the background. */
            query_async: boolean;
            team_id: number;
            insight_id: null;
            dashboard_id: null;
            labels: null;
            /** @description Whether the query has ended, successfully or not. */
            complete: boolean;
            error: boolean;
            error_message: string | null;
            /** @description The whole response, once the query is complete. Set only when the query is retrieved. */
            results: {
                [key: string]: unknown;
            } | null;
            /** Format: date-time */
            start_time: string;
            /** @description When the query started to run. */
            pickup_time: string | null;
            end_time: string | null;
            /** @description When the status of an ended query expires. */
            expiration_time: string | null;
            /** @description The id of the workflow that runs the query. */
            task_id: string | null;
            /** @description Set while the query runs. */
            query_progress: {
                bytes_read: number;
                rows_read: number;
                estimated_rows_total: number | null;
                /** @description Seconds since the query started to run. */
                time_elapsed: number;
                active_cpu_time: number | null;
            } | null;
        };
        QueryStatusResponse: {
            query_status: components["schemas"]["QueryStatus"];
        };
        RetriedFailedRuns: {
            /** @description The number of intervals that are exported again. */
            runs: number;
            results: {
                batch_export: string;
                /** @description The backfill of its intervals whose run failed; null if there is none, or not yet. */
                backfill_id: string | null;
                /** @description The number of these intervals; null while it is not known. */
                runs: number | null;
                /** @description Why nothing was started, or not yet. */
                detail: string | null;
            }[];
        };
        /** @enum {string} */
        Scope: "batch_export:read" | "batch_export:write" | "dashboard:read" | "dashboard:write" | "query:read" | "key:admin" | "audit:read";
        /** @enum {string} */
        ScopeInput: "batch_export:read" | "batch_export:write" | "dashboard:read" | "dashboard:write" | "query:read" | "key:admin" | "audit:read";
        User: {
            id: number;
            /** Format: uuid */
            uuid: string;
            distinct_id: string;
            first_name: string;
            last_name: string;
            /** Format: email */
            email: string;
            is_email_verified: boolean;
            mascot_config: {
                [key: string]: unknown;
            };
            role_at_organization: string;
        };
        Webhook: {
            id: string;
            /** @description With `batch_export:write` the whole URL, where the server can decrypt it; else its origin and `…`, since its path is often a credential. */
            url: string;
            events: ("run.failed" | "run.retries_exhausted" | "run.held" | "run.key_taken" | "interval.published" | "interval.expired" | "batch_export.paused" | "batch_export.recovered" | "backfill.paused")[];
            /**
             * @description `json`: id, type, time and data of the event. `slack`: a message for an incoming webhook of Slack.
             * @enum {string}
             */
            format: "json" | "slack";
            /** @description Send only notifications of this batch export; null for all. */
            batch_export: string | null;
            enabled: boolean;
            /** Format: date-time */
            created_at: string;
            /** @description The latest delivery attempt. */
            last_delivery: {
                /** Format: date-time */
                at: string;
                /** @description The status code of the response; null without one. */
                status: number | null;
                detail: string;
            } | null;
        };
        WebhookCreateInput: {
            url: string;
            events?: ("run.failed" | "run.retries_exhausted" | "run.held" | "run.key_taken" | "interval.published" | "interval.expired" | "batch_export.paused" | "batch_export.recovered" | "backfill.paused")[] | null;
            format?: ("json" | "slack") | null;
            batch_export?: string | null;
            enabled?: boolean | null;
            secret?: string | null;
            readonly id?: unknown;
            readonly created_at?: unknown;
            readonly last_delivery?: unknown;
        };
        WebhookDelivery: {
            id: string;
            webhook: string;
            /** @enum {string} */
            event: "run.failed" | "run.retries_exhausted" | "run.held" | "run.key_taken" | "interval.published" | "interval.expired" | "batch_export.paused" | "batch_export.recovered" | "backfill.paused";
            /** @description The header `webhook-id`, which is the same in every attempt and resend of the notification. */
            message_id: string;
            batch_export: string | null;
            /** @description The name at the time of the event. */
            batch_export_name: string | null;
            run_id: string | null;
            data_interval_start: string | null;
            data_interval_end: string | null;
            /** @description Of `interval.published`; null for other events. */
            generation: number | null;
            status: components["schemas"]["WebhookDeliveryStatus"];
            /** @description The result of the latest attempt, or why it was dropped; null before the first attempt. */
            detail: string | null;
            attempts: number;
            /** @description Null unless the delivery is pending. */
            next_attempt_at: string | null;
            /** @description The delivery that this one repeats; null for the first one. */
            resend_of: string | null;
            /** Format: date-time */
            created_at: string;
            /** @description Null while the delivery is pending. */
            ended_at: string | null;
        };
        WebhookDeliveryDetail: {
            id: string;
            webhook: string;
            /** @enum {string} */
            event: "run.failed" | "run.retries_exhausted" | "run.held" | "run.key_taken" | "interval.published" | "interval.expired" | "batch_export.paused" | "batch_export.recovered" | "backfill.paused";
            /** @description The header `webhook-id`, which is the same in every attempt and resend of the notification. */
            message_id: string;
            batch_export: string | null;
            /** @description The name at the time of the event. */
            batch_export_name: string | null;
            run_id: string | null;
            data_interval_start: string | null;
            data_interval_end: string | null;
            /** @description Of `interval.published`; null for other events. */
            generation: number | null;
            status: components["schemas"]["WebhookDeliveryStatus"];
            /** @description The result of the latest attempt, or why it was dropped; null before the first attempt. */
            detail: string | null;
            attempts: number;
            /** @description Null unless the delivery is pending. */
            next_attempt_at: string | null;
            /** @description The delivery that this one repeats; null for the first one. */
            resend_of: string | null;
            /** Format: date-time */
            created_at: string;
            /** @description Null while the delivery is pending. */
            ended_at: string | null;
            /** @description The body of the message, in the present format of the webhook. */
            payload: {
                [key: string]: unknown;
            };
            /** @description Every attempt, oldest first. */
            attempt_log: {
                number: number;
                /**
                 * Format: date-time
                 * @description When the attempt ended.
                 */
                at: string;
                duration_ms: number;
                /** @description The status code of the response; null without one. */
                status: number | null;
                detail: string;
            }[];
        };
        /**
         * @description * `pending` - is attempted at `next_attempt_at`
         *     * `delivered` - the receiver responded with 2xx
         *     * `failed` - no more attempts follow
         *     * `dropped` - was not attempted to the end; `detail` says why
         * @enum {string}
         */
        WebhookDeliveryStatus: "pending" | "delivered" | "failed" | "dropped";
        WebhookMessage: {
            /** @description The header `webhook-id`: the same in every attempt and resend. */
            id: string;
            /** @enum {string} */
            type: "run.failed" | "run.retries_exhausted" | "run.held" | "run.key_taken" | "interval.published" | "interval.expired" | "batch_export.paused" | "batch_export.recovered" | "backfill.paused" | "test";
            /**
             * Format: date-time
             * @description The time of the event.
             */
            timestamp: string;
            /** @description All fields are null in a test, except `project_id`. */
            data: {
                project_id: number;
                batch_export_id: string | null;
                batch_export_name: string | null;
                /** @description The backfill of the run; null for runs of the schedule. */
                backfill_id: string | null;
                run_id: string | null;
                /** @description The status of the run, or `Paused`. */
                status: string | null;
                latest_error: string | null;
                data_interval_start: string | null;
                data_interval_end: string | null;
                /** @description The manifest that was published. This and the following fields are null in other messages. */
                manifest_key: string | null;
                /** @description Counts how often the interval was published, from 1. The highest one wins. */
                generation: number | null;
                /** @description Rows of the files that the manifest names. */
                rows: number | null;
                bytes: number | null;
                files: number | null;
            };
        };
        WebhookTest: {
            delivered: boolean;
            /** @description The status code of the response; null without one. */
            status: number | null;
            detail: string;
        };
        WebhookUpdateInput: {
            url?: string;
            events?: ("run.failed" | "run.retries_exhausted" | "run.held" | "run.key_taken" | "interval.published" | "interval.expired" | "batch_export.paused" | "batch_export.recovered" | "backfill.paused")[] | null;
            format?: ("json" | "slack") | null;
            batch_export?: string | null;
            enabled?: boolean | null;
            /** @description The key that signs messages. Returned only when the webhook is created. */
            secret?: string;
            readonly id?: unknown;
            readonly created_at?: unknown;
            readonly last_delivery?: unknown;
        };
        Operations: {
            /** @description List projects. */
            "GET /api/projects": {
                query?: {
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                };
                result: {
                    count: number;
                    next: string | null;
                    previous: string | null;
                    results: components["schemas"]["Project"][];
                };
            };
            /** @description List batch exports. */
            "GET /batch_exports": {
                query?: {
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                };
                result: {
                    count: number;
                    next: string | null;
                    previous: string | null;
                    results: components["schemas"]["BatchExport"][];
                };
            };
            /** @description Create batch export. */
            "POST /batch_exports": {
                body: components["schemas"]["BatchExportCreateInput"];
                result: components["schemas"]["BatchExport"] | components["schemas"]["AcceptedCreation"];
            };
            /** @description Retrieve batch export. */
            "GET /batch_exports/{id}": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                result: components["schemas"]["BatchExport"];
            };
            /** @description Update batch export. */
            "PATCH /batch_exports/{id}": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                body?: components["schemas"]["BatchExportUpdateInput"];
                result: components["schemas"]["BatchExport"] | components["schemas"]["Accepted"];
            };
            /** @description Delete batch export. Cancels its backfills and runs. Exported files stay in the bucket. Its secrets are erased at once, unless unpublished objects are left to delete: the header `X-Exportd-Secrets-Until` is then the time by which they are erased. */
            "DELETE /batch_exports/{id}": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                result: components["schemas"]["Accepted"] | null;
            };
            /** @description Check a new batch export. Validates the body as creating the export does, and creates nothing. */
            "POST /batch_exports/check": {
                body: components["schemas"]["BatchExportCreateInput"];
                result: components["schemas"]["BatchExportCheck"];
            };
            /** @description Check an update of a batch export. Validates the body as updating the export does, and says what it would change. Changes nothing. */
            "POST /batch_exports/{id}/check": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                body?: components["schemas"]["BatchExportUpdateInput"];
                result: components["schemas"]["BatchExportCheck"];
            };
            /** @description Test a destination. Writes and deletes a small object below the prefix. The config is not saved. */
            "POST /batch_exports/test": {
                body: components["schemas"]["DestinationTestNewInput"];
                result: components["schemas"]["DestinationTest"];
            };
            /** @description Test the destination of a batch export. Tests the stored config including its secrets, with the changes of the body applied. The changes are not saved. */
            "POST /batch_exports/{id}/test": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                body?: components["schemas"]["DestinationTestOfInput"];
                result: components["schemas"]["DestinationTest"];
            };
            /** @description Pause batch export. */
            "POST /batch_exports/{id}/pause": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                body?: {
                    name?: string;
                    /**
                     * @description The rows that are exported: events by default.
                     * @default events
                     */
                    model?: ("events" | "persons") | null;
                    /**
                     * @description How much time each run exports.
                     * @default hour
                     * @example hour
                     * @example every 5 minutes
                     */
                    interval?: string;
                    destination?: {
                        type?: string;
                        config?: ({
                            [key: string]: unknown;
                        } | {
                            /** Bucket */
                            bucket_name?: string;
                            /**
                             * @description The region of the bucket. Servers other than AWS often accept us-east-1.
                             * @example eu-central-1
                             * @example us-east-1
                             * @example eu-west-1
                             * @example us-west-2
                             * @example auto
                             */
                            region?: string;
                            /**
                             * @description Where files are written. Variables: {year} {month} {day} {hour} {minute} {second} {data_interval_start} {data_interval_end} {table}. Dates are those of the interval's start in UTC.
                             * @example events/{year}/{month}/{day}
                             */
                            prefix?: string;
                            aws_access_key_id?: string | null;
                            aws_secret_access_key?: string | null;
                            role_arn?: (string | null) | null;
                            external_id?: (string | null) | null;
                            endpoint_url?: (string | null) | null;
                            use_virtual_style_addressing?: boolean | null;
                            file_format?: ("JSONLines" | "CSV" | "Parquet") | null;
                            compression?: (string | null) | null;
                            compression_level?: (number | null) | null;
                            bloom_filters?: boolean | null;
                            max_file_size_mb?: (number | null) | null;
                            on_bad_row?: ("fail" | "reject") | null;
                            on_missing_rows?: ("keep" | "follow") | null;
                            include_events?: string[] | null;
                            exclude_events?: string[] | null;
                            filters?: {
                                /** @enum {string} */
                                type: "event" | "person" | "event_metadata" | "hogql" | "dialect";
                                key: string;
                                /** @default exact */
                                operator?: ("exact" | "is_not" | "in" | "not_in" | "is_cleaned_path_exact" | "icontains" | "not_icontains" | "regex" | "not_regex" | "gt" | "gte" | "lt" | "lte" | "min" | "max" | "between" | "not_between" | "is_set" | "is_not_set" | "is_date_exact" | "is_date_before" | "is_date_after") | null;
                                value?: unknown;
                            }[] | null;
                            encryption?: (("AES256" | "aws:kms") | null) | null;
                            kms_key_id?: (string | null) | null;
                        }) | null;
                    };
                    /** @description An IANA time zone, in which days, weeks and months start. Null is UTC. */
                    timezone?: string | null;
                    /** @description For intervals of a day or longer: the hour that they start at. */
                    offset_hour?: number | null;
                    /** @description For a week: days after its Sunday, at most 6. For a month: days after its first. */
                    offset_day?: number | null;
                    /** @description A paused export starts no runs. */
                    paused?: boolean | null;
                    /** @description When it was last paused. exportd sets it. */
                    last_paused_at?: string | null;
                    /** @description Intervals that end before this time are not exported. */
                    start_at?: string | null;
                    /** @description Intervals that end after this time are not exported. */
                    end_at?: string | null;
                    /**
                     * SQL
                     * @description A SELECT over the model that defines the columns and rows of the files. Without it, all rows of the model are exported unchanged.
                     */
                    dialect_query?: string | null;
                    /** @description The days after which lifecycle rules of the bucket delete what was exported. Set it for rules that were added after objects were written: what is older and missing is expired, not lost. */
                    retention_days?: number | null;
                    readonly id?: unknown;
                    readonly team_id?: unknown;
                    readonly created_at?: unknown;
                    readonly last_updated_at?: unknown;
                    readonly latest_runs?: unknown;
                    readonly schema?: unknown;
                    readonly lag?: unknown;
                };
                result: null | components["schemas"]["Accepted"];
            };
            /** @description Unpause batch export. */
            "POST /batch_exports/{id}/unpause": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                body?: {
                    name?: string;
                    /**
                     * @description The rows that are exported: events by default.
                     * @default events
                     */
                    model?: ("events" | "persons") | null;
                    /**
                     * @description How much time each run exports.
                     * @default hour
                     * @example hour
                     * @example every 5 minutes
                     */
                    interval?: string;
                    destination?: {
                        type?: string;
                        config?: ({
                            [key: string]: unknown;
                        } | {
                            /** Bucket */
                            bucket_name?: string;
                            /**
                             * @description The region of the bucket. Servers other than AWS often accept us-east-1.
                             * @example eu-central-1
                             * @example us-east-1
                             * @example eu-west-1
                             * @example us-west-2
                             * @example auto
                             */
                            region?: string;
                            /**
                             * @description Where files are written. Variables: {year} {month} {day} {hour} {minute} {second} {data_interval_start} {data_interval_end} {table}. Dates are those of the interval's start in UTC.
                             * @example events/{year}/{month}/{day}
                             */
                            prefix?: string;
                            aws_access_key_id?: string | null;
                            aws_secret_access_key?: string | null;
                            role_arn?: (string | null) | null;
                            external_id?: (string | null) | null;
                            endpoint_url?: (string | null) | null;
                            use_virtual_style_addressing?: boolean | null;
                            file_format?: ("JSONLines" | "CSV" | "Parquet") | null;
                            compression?: (string | null) | null;
                            compression_level?: (number | null) | null;
                            bloom_filters?: boolean | null;
                            max_file_size_mb?: (number | null) | null;
                            on_bad_row?: ("fail" | "reject") | null;
                            on_missing_rows?: ("keep" | "follow") | null;
                            include_events?: string[] | null;
                            exclude_events?: string[] | null;
                            filters?: {
                                /** @enum {string} */
                                type: "event" | "person" | "event_metadata" | "hogql" | "dialect";
                                key: string;
                                /** @default exact */
                                operator?: ("exact" | "is_not" | "in" | "not_in" | "is_cleaned_path_exact" | "icontains" | "not_icontains" | "regex" | "not_regex" | "gt" | "gte" | "lt" | "lte" | "min" | "max" | "between" | "not_between" | "is_set" | "is_not_set" | "is_date_exact" | "is_date_before" | "is_date_after") | null;
                                value?: unknown;
                            }[] | null;
                            encryption?: (("AES256" | "aws:kms") | null) | null;
                            kms_key_id?: (string | null) | null;
                        }) | null;
                    };
                    /** @description An IANA time zone, in which days, weeks and months start. Null is UTC. */
                    timezone?: string | null;
                    /** @description For intervals of a day or longer: the hour that they start at. */
                    offset_hour?: number | null;
                    /** @description For a week: days after its Sunday, at most 6. For a month: days after its first. */
                    offset_day?: number | null;
                    /** @description A paused export starts no runs. */
                    paused?: boolean | null;
                    /** @description When it was last paused. exportd sets it. */
                    last_paused_at?: string | null;
                    /** @description Intervals that end before this time are not exported. */
                    start_at?: string | null;
                    /** @description Intervals that end after this time are not exported. */
                    end_at?: string | null;
                    /**
                     * SQL
                     * @description A SELECT over the model that defines the columns and rows of the files. Without it, all rows of the model are exported unchanged.
                     */
                    dialect_query?: string | null;
                    /** @description The days after which lifecycle rules of the bucket delete what was exported. Set it for rules that were added after objects were written: what is older and missing is expired, not lost. */
                    retention_days?: number | null;
                    readonly id?: unknown;
                    readonly team_id?: unknown;
                    readonly created_at?: unknown;
                    readonly last_updated_at?: unknown;
                    readonly latest_runs?: unknown;
                    readonly schema?: unknown;
                    readonly lag?: unknown;
                    /** @description Also backfill the intervals missed since the export was paused. */
                    backfill?: boolean;
                };
                result: null | components["schemas"]["Accepted"];
            };
            /** @description Backfill batch export. Exports the whole intervals that overlap the range; `Location` is the URL of the backfill. With `dry_run: true`, returns a preview instead. */
            "POST /batch_exports/{id}/backfill": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                body: {
                    name?: string;
                    /**
                     * @description The rows that are exported: events by default.
                     * @default events
                     */
                    model?: ("events" | "persons") | null;
                    /**
                     * @description How much time each run exports.
                     * @default hour
                     * @example hour
                     * @example every 5 minutes
                     */
                    interval?: string;
                    destination?: {
                        type?: string;
                        config?: ({
                            [key: string]: unknown;
                        } | {
                            /** Bucket */
                            bucket_name?: string;
                            /**
                             * @description The region of the bucket. Servers other than AWS often accept us-east-1.
                             * @example eu-central-1
                             * @example us-east-1
                             * @example eu-west-1
                             * @example us-west-2
                             * @example auto
                             */
                            region?: string;
                            /**
                             * @description Where files are written. Variables: {year} {month} {day} {hour} {minute} {second} {data_interval_start} {data_interval_end} {table}. Dates are those of the interval's start in UTC.
                             * @example events/{year}/{month}/{day}
                             */
                            prefix?: string;
                            aws_access_key_id?: string | null;
                            aws_secret_access_key?: string | null;
                            role_arn?: (string | null) | null;
                            external_id?: (string | null) | null;
                            endpoint_url?: (string | null) | null;
                            use_virtual_style_addressing?: boolean | null;
                            file_format?: ("JSONLines" | "CSV" | "Parquet") | null;
                            compression?: (string | null) | null;
                            compression_level?: (number | null) | null;
                            bloom_filters?: boolean | null;
                            max_file_size_mb?: (number | null) | null;
                            on_bad_row?: ("fail" | "reject") | null;
                            on_missing_rows?: ("keep" | "follow") | null;
                            include_events?: string[] | null;
                            exclude_events?: string[] | null;
                            filters?: {
                                /** @enum {string} */
                                type: "event" | "person" | "event_metadata" | "hogql" | "dialect";
                                key: string;
                                /** @default exact */
                                operator?: ("exact" | "is_not" | "in" | "not_in" | "is_cleaned_path_exact" | "icontains" | "not_icontains" | "regex" | "not_regex" | "gt" | "gte" | "lt" | "lte" | "min" | "max" | "between" | "not_between" | "is_set" | "is_not_set" | "is_date_exact" | "is_date_before" | "is_date_after") | null;
                                value?: unknown;
                            }[] | null;
                            encryption?: (("AES256" | "aws:kms") | null) | null;
                            kms_key_id?: (string | null) | null;
                        }) | null;
                    };
                    /** @description An IANA time zone, in which days, weeks and months start. Null is UTC. */
                    timezone?: string | null;
                    /** @description For intervals of a day or longer: the hour that they start at. */
                    offset_hour?: number | null;
                    /** @description For a week: days after its Sunday, at most 6. For a month: days after its first. */
                    offset_day?: number | null;
                    /** @description A paused export starts no runs. */
                    paused?: boolean | null;
                    /** @description When it was last paused. exportd sets it. */
                    last_paused_at?: string | null;
                    /** Format: date-time */
                    start_at: string;
                    /** Format: date-time */
                    end_at: string;
                    /**
                     * SQL
                     * @description A SELECT over the model that defines the columns and rows of the files. Without it, all rows of the model are exported unchanged.
                     */
                    dialect_query?: string | null;
                    /** @description The days after which lifecycle rules of the bucket delete what was exported. Set it for rules that were added after objects were written: what is older and missing is expired, not lost. */
                    retention_days?: number | null;
                    readonly id?: unknown;
                    readonly team_id?: unknown;
                    readonly created_at?: unknown;
                    readonly last_updated_at?: unknown;
                    readonly latest_runs?: unknown;
                    readonly schema?: unknown;
                    readonly lag?: unknown;
                    /** @description Export what the source has now, even if rows are missing there that the bucket has: these leave the bucket. */
                    allow_shrink?: boolean | null;
                    /** @description Preview: return what the backfill would export without starting it. */
                    dry_run?: boolean | null;
                };
                result: components["schemas"]["BatchExportDryRun"] | components["schemas"]["Accepted"];
            };
            /** @description Retry failed runs of all batch exports. After a fault was fixed: exports each interval of the project again whose newest run is Failed, FailedRetryable or TimedOut, paused exports included, with one backfill for each export. Runs that are held because rows are missing in the source are left out. */
            "POST /batch_exports/retry_failed": {
                body?: {
                    /** @description Only runs that failed at or after this time, such as -2h. By default all failed runs. */
                    since?: (string) | null;
                };
                result: components["schemas"]["RetriedFailedRuns"];
            };
            /** @description List batch export runs. */
            "GET /batch_exports/{batch_export_id}/runs": {
                path: {
                    /** Format: uuid */
                    batch_export_id: string;
                };
                query?: {
                    /** @default 100 */
                    limit?: number;
                    cursor?: string;
                    status?: string | string[];
                    after?: string;
                    before?: string;
                    start?: string;
                    end?: string;
                    /**
                     * @default -created_at
                     * @enum {string}
                     */
                    ordering?: "created_at" | "-created_at" | "data_interval_start" | "-data_interval_start";
                };
                result: {
                    count: number;
                    next: string | null;
                    previous: string | null;
                    results: components["schemas"]["BatchExportRun"][];
                };
            };
            /** @description Retrieve batch export run. */
            "GET /batch_exports/{batch_export_id}/runs/{id}": {
                path: {
                    /** Format: uuid */
                    batch_export_id: string;
                    /** Format: uuid */
                    id: string;
                };
                result: components["schemas"]["BatchExportRun"];
            };
            /** @description Retry batch export run. Creates another run of this run's interval. `Location` is the URL of the run, or of the backfill that will create it. */
            "POST /batch_exports/{batch_export_id}/runs/{id}/retry": {
                path: {
                    /** Format: uuid */
                    batch_export_id: string;
                    /** Format: uuid */
                    id: string;
                };
                body?: {
                    /** @description Export what the source has now, even if rows are missing there that the bucket has: these leave the bucket. */
                    allow_shrink?: boolean | null;
                    status?: ("Cancelled" | "Completed" | "ContinuedAsNew" | "Failed" | "FailedRetryable" | "Terminated" | "TimedOut" | "Running" | "Starting") | null;
                    records_completed?: number | null;
                    latest_error?: string | null;
                    data_interval_start?: string | null;
                    data_interval_end?: string | null;
                    cursor?: string | null;
                    finished_at?: string | null;
                    records_total_count?: number | null;
                    readonly id?: unknown;
                    readonly created_at?: unknown;
                    readonly last_updated_at?: unknown;
                    readonly batch_export?: unknown;
                    readonly bytes?: unknown;
                    readonly files?: unknown;
                    readonly generation?: unknown;
                    readonly manifest_key?: unknown;
                    readonly backfill_id?: unknown;
                    readonly status_detail?: unknown;
                    readonly temporal_ui?: unknown;
                };
                result: null | components["schemas"]["Accepted"];
            };
            /** @description Cancel batch export run. Responds 200 once nothing more of the run can reach the bucket, else 202. While it publishes its manifest, a run is cancelled once the bucket shows that the manifest is not there; `status_detail` says so. */
            "POST /batch_exports/{batch_export_id}/runs/{id}/cancel": {
                path: {
                    /** Format: uuid */
                    batch_export_id: string;
                    /** Format: uuid */
                    id: string;
                };
                body?: Record<string, never>;
                result: components["schemas"]["BatchExportRun"] | components["schemas"]["Accepted"];
            };
            /** @description List backfills. */
            "GET /batch_exports/{batch_export_id}/backfills": {
                path: {
                    /** Format: uuid */
                    batch_export_id: string;
                };
                query?: {
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                };
                result: {
                    count: number;
                    next: string | null;
                    previous: string | null;
                    results: components["schemas"]["BatchExportBackfill"][];
                };
            };
            /** @description Create backfill. Exports the whole intervals that overlap the range. With `dry_run: true`, previews that without starting it. */
            "POST /batch_exports/{batch_export_id}/backfills": {
                path: {
                    /** Format: uuid */
                    batch_export_id: string;
                };
                body: {
                    /** Format: date-time */
                    start_at: string;
                    /** Format: date-time */
                    end_at: string;
                    /** @description Export what the source has now, even if rows are missing there that the bucket has: these leave the bucket. */
                    allow_shrink?: boolean | null;
                    /** @description Preview: return what the backfill would export without starting it. */
                    dry_run?: boolean | null;
                };
                result: components["schemas"]["BatchExportDryRun"] | components["schemas"]["CreatedBatchExportBackfill"] | components["schemas"]["Accepted"];
            };
            /** @description Retrieve backfill. */
            "GET /batch_exports/{batch_export_id}/backfills/{id}": {
                path: {
                    /** Format: uuid */
                    batch_export_id: string;
                    /** Format: uuid */
                    id: string;
                };
                result: components["schemas"]["BatchExportBackfill"];
            };
            /** @description Cancel backfill. */
            "POST /batch_exports/{batch_export_id}/backfills/{id}/cancel": {
                path: {
                    /** Format: uuid */
                    batch_export_id: string;
                    /** Format: uuid */
                    id: string;
                };
                body?: Record<string, never>;
                result: components["schemas"]["BatchExportBackfill"] | components["schemas"]["Accepted"];
            };
            /** @description Pause backfill. */
            "POST /batch_exports/{batch_export_id}/backfills/{id}/pause": {
                path: {
                    /** Format: uuid */
                    batch_export_id: string;
                    /** Format: uuid */
                    id: string;
                };
                body?: Record<string, never>;
                result: components["schemas"]["BatchExportBackfill"] | components["schemas"]["Accepted"];
            };
            /** @description Unpause backfill. */
            "POST /batch_exports/{batch_export_id}/backfills/{id}/unpause": {
                path: {
                    /** Format: uuid */
                    batch_export_id: string;
                    /** Format: uuid */
                    id: string;
                };
                body?: Record<string, never>;
                result: components["schemas"]["BatchExportBackfill"] | components["schemas"]["Accepted"];
            };
            /** @description List batch export intervals. What exportd knows of each interval: its status, its current manifest, and its last comparison with the source. Intervals without runs are listed as ranges. Newest first. */
            "GET /batch_exports/{batch_export_id}/intervals": {
                path: {
                    /** Format: uuid */
                    batch_export_id: string;
                };
                query?: {
                    /** @default 100 */
                    limit?: number;
                    cursor?: string;
                    status?: string | string[];
                    after?: string;
                    before?: string;
                };
                result: {
                    count: number;
                    next: string | null;
                    previous: string | null;
                    results: components["schemas"]["BatchExportInterval"][];
                };
            };
            /** @description Acknowledge the differences of an interval. Its files differ from the source, and that is right: rows were erased there, for example. The interval raises no alert any more, until a comparison finds other differences. */
            "POST /batch_exports/{batch_export_id}/intervals/acknowledge": {
                path: {
                    /** Format: uuid */
                    batch_export_id: string;
                };
                body: {
                    /** Format: date-time */
                    data_interval_start: string;
                    /** Format: date-time */
                    data_interval_end: string;
                    /** @description Why the files may differ from the source. */
                    reason: string;
                };
                result: components["schemas"]["BatchExportInterval"];
            };
            /** @description Retrieve batch export logs. */
            "GET /batch_exports/{id}/logs": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                query?: {
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                    level?: string | string[];
                    after?: string;
                    before?: string;
                    search?: string;
                    /** Format: uuid */
                    run_id?: string;
                };
                result: {
                    count: number;
                    next: string | null;
                    previous: string | null;
                    results: components["schemas"]["LogEntry"][];
                };
            };
            /** @description List webhooks. */
            "GET /webhooks": {
                query?: {
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                };
                result: {
                    count: number;
                    next: string | null;
                    previous: string | null;
                    results: components["schemas"]["Webhook"][];
                };
            };
            /** @description Create webhook. Messages are signed with the returned secret, as specified by Standard Webhooks. */
            "POST /webhooks": {
                body: components["schemas"]["WebhookCreateInput"];
                result: components["schemas"]["CreatedWebhook"];
            };
            /** @description Retrieve webhook. */
            "GET /webhooks/{id}": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                result: components["schemas"]["Webhook"];
            };
            /** @description Update webhook. */
            "PATCH /webhooks/{id}": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                body?: components["schemas"]["WebhookUpdateInput"];
                result: components["schemas"]["Webhook"];
            };
            /** @description Delete webhook. Pending deliveries are dropped. */
            "DELETE /webhooks/{id}": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                result: null;
            };
            /** @description Test webhook. Sends one message of type `test`, without retries, and returns the result. */
            "POST /webhooks/{id}/test": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                body?: Record<string, never>;
                result: components["schemas"]["WebhookTest"];
            };
            /** @description List webhook deliveries. What the webhook received and what it did not, newest first, as long as logs are kept. */
            "GET /webhooks/{id}/deliveries": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                query?: {
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                    status?: string | string[];
                    event?: string | string[];
                    /** Format: uuid */
                    batch_export?: string;
                };
                result: {
                    count: number;
                    next: string | null;
                    previous: string | null;
                    results: components["schemas"]["WebhookDelivery"][];
                };
            };
            /** @description Retrieve webhook delivery. */
            "GET /webhooks/{id}/deliveries/{delivery_id}": {
                path: {
                    /** Format: uuid */
                    id: string;
                    /** Format: uuid */
                    delivery_id: string;
                };
                result: components["schemas"]["WebhookDeliveryDetail"];
            };
            /** @description Resend webhook delivery. Sends the message again, with the same id. Responds 201 with a new delivery, or 200 with the pending one of the same message, which is attempted now. A disabled webhook is 409. */
            "POST /webhooks/{id}/deliveries/{delivery_id}/resend": {
                path: {
                    /** Format: uuid */
                    id: string;
                    /** Format: uuid */
                    delivery_id: string;
                };
                body?: Record<string, never>;
                result: components["schemas"]["WebhookDeliveryDetail"];
            };
            /** @description List dashboards. The dashboards that the user of the key may see: pinned ones first, then by name (ignoring case), then by id. Deleted dashboards and those with access level `none` are neither listed nor counted. */
            "GET /dashboards": {
                query?: {
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                };
                result: {
                    count: number;
                    next: string | null;
                    previous: string | null;
                    results: components["schemas"]["Dashboard"][];
                };
            };
            /** @description Create dashboard. The user of the key becomes the creator, who is always a manager. */
            "POST /dashboards": {
                body: components["schemas"]["DashboardCreateInput"];
                result: components["schemas"]["DashboardDetail"];
            };
            /** @description Retrieve dashboard. */
            "GET /dashboards/{id}": {
                path: {
                    id: number;
                };
                result: components["schemas"]["DashboardDetail"];
            };
            /** @description Update dashboard. Omitted fields keep their value; null resets a field to its default. Requires an editor; changing `restriction_level`, `default_access_level` or `access_controls` requires a manager. `deleted: true` deletes the dashboard, `deleted: false` restores it. */
            "PATCH /dashboards/{id}": {
                path: {
                    id: number;
                };
                body?: components["schemas"]["DashboardUpdateInput"];
                result: components["schemas"]["DashboardDetail"];
            };
            /** @description Delete dashboard. An update with `deleted: false` restores it. */
            "DELETE /dashboards/{id}": {
                path: {
                    id: number;
                };
                result: null;
            };
            /** @description List API keys. The keys of all users that give access to the project, newest first. */
            "GET /keys": {
                query?: {
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                    status?: string | string[];
                };
                result: {
                    count: number;
                    next: string | null;
                    previous: string | null;
                    results: components["schemas"]["ApiKey"][];
                };
            };
            /** @description Create API key. Creates a key of the calling user. It gets scopes and projects of the calling key alone, so that a key never grants more than it has. */
            "POST /keys": {
                body: components["schemas"]["ApiKeyCreateInput"];
                result: components["schemas"]["CreatedApiKey"];
            };
            /** @description Retrieve API key. */
            "GET /keys/{id}": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                result: components["schemas"]["ApiKey"];
            };
            /** @description Revoke API key. Ends the key at once, with its sessions and streams. A key that also covers projects that the calling key does not cover keeps those. */
            "DELETE /keys/{id}": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                result: null;
            };
            /** @description Rotate API key. Creates the successor of a key of the calling user: a new key with its name, scopes, projects and lifetime. Both work until the overlap ends. The calling key must have the scopes and projects of the key. */
            "POST /keys/{id}/rotate": {
                path: {
                    /** Format: uuid */
                    id: string;
                };
                body?: components["schemas"]["ApiKeyRotateInput"];
                result: components["schemas"]["CreatedApiKey"];
            };
            /** @description List audit events. Who changed what in the project, and which attempts of its keys were refused, newest first, as long as `EXPORTD_AUDIT_RETENTION`. Attempts without a valid key belong to no project: operators read them with `exportd audit`. Reads are not recorded. */
            "GET /audit": {
                query?: {
                    /** @default 100 */
                    limit?: number;
                    /** @default 0 */
                    offset?: number;
                    user?: number;
                    /** Format: uuid */
                    key?: string;
                    action?: string | string[];
                    object?: string;
                    outcome?: string | string[];
                    since?: string;
                    until?: string;
                };
                result: {
                    count: number;
                    next: string | null;
                    previous: string | null;
                    results: components["schemas"]["AuditEvent"][];
                };
            };
            /** @description Check auth for async. Returns 200 when the key may run queries. Runs no query and does not count against the rate limit. */
            "POST /query/check_auth_for_async": {
                result: null;
            };
            /** @description Retrieve draft SQL. Drafts a query in the SQL dialect from `prompt` in plain English, such as "signups per week by country in the last 3 months". The query compiles and is not run. A draft counts against the rate limit of queries. The response is 400 with the code `required`, `too_long` or `unclear` when the prompt is missing, longer than 400 characters or not understood. */
            "GET /query/draft_sql": {
                query?: {
                    prompt?: string;
                    current_query?: string;
                };
                result: components["schemas"]["DraftedSql"];
            };
            /** @description Create query. Returns the results, or `query_status` when they are calculated in the background. Results are limited to 10,000 rows by default; `hasMore` is true when rows were cut, and batch exports have no such limit. A project can send 120 requests per hour by default. The headers `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (Unix time in seconds of the next free request) show the quota. A project runs 4 queries at the same time and a key 3 by default, and more wait. The response is 429 when the quota is used up or the wait is too long, and 503 when several projects use all slots; both have `Retry-After` in seconds. A client that disconnects cancels its query. */
            "POST /query": {
                body: components["schemas"]["QueryRequestInput"];
                result: components["schemas"]["QueryResponse"];
            };
            /** @description Retrieve query. Returns the status of a query, with its response once it is complete. Available for background queries and for queries with a `client_query_id`. */
            "GET /query/{id}": {
                path: {
                    id: string;
                };
                query?: {
                    /** @enum {string} */
                    show_progress?: "true" | "false";
                };
                result: components["schemas"]["QueryStatusResponse"];
            };
            /** @description Delete query. Cancels the query, in the background or not. Responds after its statement has ended in the database. */
            "DELETE /query/{id}": {
                path: {
                    id: string;
                };
                result: null;
            };
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type Accepted = components['schemas']['Accepted'];
export type AcceptedCreation = components['schemas']['AcceptedCreation'];
export type ApiKey = components['schemas']['ApiKey'];
export type ApiKeyCreateInput = components['schemas']['ApiKeyCreateInput'];
export type ApiKeyRotateInput = components['schemas']['ApiKeyRotateInput'];
export type AuditEvent = components['schemas']['AuditEvent'];
export type BatchExport = components['schemas']['BatchExport'];
export type BatchExportBackfill = components['schemas']['BatchExportBackfill'];
export type BatchExportCheck = components['schemas']['BatchExportCheck'];
export type BatchExportCreateInput = components['schemas']['BatchExportCreateInput'];
export type BatchExportDryRun = components['schemas']['BatchExportDryRun'];
export type BatchExportGap = components['schemas']['BatchExportGap'];
export type BatchExportInterval = components['schemas']['BatchExportInterval'];
export type BatchExportIntervalStatus = components['schemas']['BatchExportIntervalStatus'];
export type BatchExportLag = components['schemas']['BatchExportLag'];
export type BatchExportRun = components['schemas']['BatchExportRun'];
export type BatchExportRunStatus = components['schemas']['BatchExportRunStatus'];
export type BatchExportUpdateInput = components['schemas']['BatchExportUpdateInput'];
export type CreatedApiKey = components['schemas']['CreatedApiKey'];
export type CreatedBatchExportBackfill = components['schemas']['CreatedBatchExportBackfill'];
export type CreatedWebhook = components['schemas']['CreatedWebhook'];
export type Dashboard = components['schemas']['Dashboard'];
export type DashboardAccessLevel = components['schemas']['DashboardAccessLevel'];
export type DashboardAccessLevelInput = components['schemas']['DashboardAccessLevelInput'];
export type DashboardCreateInput = components['schemas']['DashboardCreateInput'];
export type DashboardDetail = components['schemas']['DashboardDetail'];
export type DashboardPrivilegeLevel = components['schemas']['DashboardPrivilegeLevel'];
export type DashboardRestrictionLevel = components['schemas']['DashboardRestrictionLevel'];
export type DashboardRestrictionLevelInput = components['schemas']['DashboardRestrictionLevelInput'];
export type DashboardUpdateInput = components['schemas']['DashboardUpdateInput'];
export type DestinationTest = components['schemas']['DestinationTest'];
export type DestinationTestNewInput = components['schemas']['DestinationTestNewInput'];
export type DestinationTestOfInput = components['schemas']['DestinationTestOfInput'];
export type DraftedSql = components['schemas']['DraftedSql'];
export type Error = components['schemas']['Error'];
export type JsonValueInput = components['schemas']['JsonValueInput'];
export type LogEntry = components['schemas']['LogEntry'];
export type Project = components['schemas']['Project'];
export type QueryRequestInput = components['schemas']['QueryRequestInput'];
export type QueryResponse = components['schemas']['QueryResponse'];
export type QueryStatus = components['schemas']['QueryStatus'];
export type QueryStatusResponse = components['schemas']['QueryStatusResponse'];
export type RetriedFailedRuns = components['schemas']['RetriedFailedRuns'];
export type Scope = components['schemas']['Scope'];
export type ScopeInput = components['schemas']['ScopeInput'];
export type User = components['schemas']['User'];
export type Webhook = components['schemas']['Webhook'];
export type WebhookCreateInput = components['schemas']['WebhookCreateInput'];
export type WebhookDelivery = components['schemas']['WebhookDelivery'];
export type WebhookDeliveryDetail = components['schemas']['WebhookDeliveryDetail'];
export type WebhookDeliveryStatus = components['schemas']['WebhookDeliveryStatus'];
export type WebhookMessage = components['schemas']['WebhookMessage'];
export type WebhookTest = components['schemas']['WebhookTest'];
export type WebhookUpdateInput = components['schemas']['WebhookUpdateInput'];
export type Operations = components['schemas']['Operations'];
