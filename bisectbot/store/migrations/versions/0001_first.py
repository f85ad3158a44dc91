"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "change",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("patch_id", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_change")),
        sa.UniqueConstraint("key", name=op.f("uq_change_key")),
    )
    op.create_table(
        "command_log",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("raw", sa.String(), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_command_log")),
    )
    op.create_table(
        "host_group",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_host_group")),
        sa.UniqueConstraint("name", name=op.f("uq_host_group_name")),
    )
    op.create_table(
        "lease",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_lease")),
    )
    op.create_table(
        "opt_out",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("how", sa.String(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_opt_out")),
        sa.UniqueConstraint("address", name=op.f("uq_opt_out_address")),
    )
    op.create_table(
        "person",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("identities", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_person")),
        sa.UniqueConstraint("name", name=op.f("uq_person_name")),
    )
    op.create_table(
        "request",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("asker", sa.String(), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column(
            "state",
            sa.Enum(
                "open", "running", "done", "failed", "cancelled", name="requeststate", native_enum=False, length=24
            ),
            nullable=False,
        ),
        sa.Column("answer", sa.String(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_request")),
    )
    with op.batch_alter_table("request", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_request_state"), ["state"], unique=False)

    op.create_table(
        "switch",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_switch")),
        sa.UniqueConstraint("name", name=op.f("uq_switch_name")),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("revoked", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token")),
        sa.UniqueConstraint("sha256", name=op.f("uq_token_sha256")),
    )
    op.create_table(
        "tree",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("fetched", sa.Double(), nullable=False),
        sa.Column("problem", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tree")),
        sa.UniqueConstraint("name", name=op.f("uq_tree_name")),
    )
    op.create_table(
        "branch",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("tree_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("problem", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["tree_id"], ["tree.id"], name=op.f("fk_branch_tree_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_branch")),
        sa.UniqueConstraint("tree_id", "name", name=op.f("uq_branch_tree_id_name")),
    )
    op.create_table(
        "commit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("sha", sa.String(length=64), nullable=False),
        sa.Column("change_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("author_name", sa.String(), nullable=False),
        sa.Column("author_mail", sa.String(), nullable=False),
        sa.Column("author_date", sa.Double(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("content", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(["change_id"], ["change.id"], name=op.f("fk_commit_change_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_commit")),
        sa.UniqueConstraint("sha", name=op.f("uq_commit_sha")),
    )
    with op.batch_alter_table("commit", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_commit_change_id"), ["change_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_commit_content"), ["content"], unique=False)

    op.create_table(
        "conversation",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("request_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("transport", sa.String(length=16), nullable=False),
        sa.Column("place", sa.JSON(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("told", sa.String(), nullable=False),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["request_id"], ["request.id"], name=op.f("fk_conversation_request_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conversation")),
    )
    with op.batch_alter_table("conversation", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_conversation_open"), ["open"], unique=False)
        batch_op.create_index(batch_op.f("ix_conversation_request_id"), ["request_id"], unique=False)

    op.create_table(
        "environment",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("group_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["group_id"], ["host_group.id"], name=op.f("fk_environment_group_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_environment")),
        sa.UniqueConstraint("group_id", "digest", name=op.f("uq_environment_group_id_digest")),
    )
    op.create_table(
        "host",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("group_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column(
            "state",
            sa.Enum(
                "good",
                "unknown",
                "suspect",
                "bad",
                "maintenance",
                "retired",
                name="hoststate",
                native_enum=False,
                length=24,
            ),
            nullable=False,
        ),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("trusted", sa.Double(), nullable=False),
        sa.Column("seen", sa.Double(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("hinted", sa.Double(), nullable=False),
        sa.Column("booted", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["group_id"], ["host_group.id"], name=op.f("fk_host_group_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_host")),
        sa.UniqueConstraint("name", name=op.f("uq_host_name")),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("testcase", sa.String(), nullable=False),
        sa.Column("group_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["group_id"], ["host_group.id"], name=op.f("fk_job_group_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
        sa.UniqueConstraint("digest", name=op.f("uq_job_digest")),
    )
    op.create_table(
        "report",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("change_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("direction", sa.String(length=16), nullable=False),
        sa.Column("sha", sa.String(length=64), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("twin", sa.JSON(), nullable=False),
        sa.Column(
            "state",
            sa.Enum("held", "released", "rejected", name="reportstate", native_enum=False, length=24),
            nullable=False,
        ),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["change_id"], ["change.id"], name=op.f("fk_report_change_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_report")),
        sa.UniqueConstraint("change_id", "direction", name=op.f("uq_report_change_id_direction")),
        sa.UniqueConstraint("message_id", name=op.f("uq_report_message_id")),
    )
    op.create_table(
        "subscription",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("person_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("rule", sa.JSON(), nullable=False),
        sa.Column("muted_until", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_subscription_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_subscription")),
    )
    with op.batch_alter_table("subscription", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_subscription_person_id"), ["person_id"], unique=False)

    op.create_table(
        "build",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("commit_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("recipe", sa.JSON(), nullable=False),
        sa.Column("recipe_digest", sa.String(length=64), nullable=False),
        sa.Column(
            "state",
            sa.Enum(
                "planned",
                "queued",
                "leased",
                "building",
                "ready",
                "untestable",
                "failed",
                name="buildstate",
                native_enum=False,
                length=24,
            ),
            nullable=False,
        ),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("signature", sa.String(length=64), nullable=False),
        sa.Column("artifact", sa.String(length=64), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("not_before", sa.Double(), nullable=False),
        sa.Column("hinted", sa.Double(), nullable=False),
        sa.Column("finished", sa.Double(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["commit_id"], ["commit.id"], name=op.f("fk_build_commit_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_build")),
        sa.UniqueConstraint("commit_id", "recipe_digest", name=op.f("uq_build_commit_id_recipe_digest")),
    )
    with op.batch_alter_table("build", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_build_signature"), ["signature"], unique=False)
        batch_op.create_index(batch_op.f("ix_build_state_rank"), ["state", "rank"], unique=False)

    op.create_table(
        "head",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("branch_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("commit_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column(
            "state",
            sa.Enum("new", "planned", "coalesced", name="headstate", native_enum=False, length=24),
            nullable=False,
        ),
        sa.Column("seen", sa.Double(), nullable=False),
        sa.Column("begun", sa.Double(), nullable=False),
        sa.Column("backfill", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["branch_id"], ["branch.id"], name=op.f("fk_head_branch_id")),
        sa.ForeignKeyConstraint(["commit_id"], ["commit.id"], name=op.f("fk_head_commit_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_head")),
        sa.UniqueConstraint("branch_id", "number", name=op.f("uq_head_branch_id_number")),
    )
    with op.batch_alter_table("head", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_head_commit_id"), ["commit_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_head_state_branch_id"), ["state", "branch_id"], unique=False)

    op.create_table(
        "judgement",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("report_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column(
            "judged",
            sa.Enum("wrong", "accepted", "fixed", "duplicate", name="judged", native_enum=False, length=24),
            nullable=False,
        ),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.Column("probability", sa.Double(), nullable=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["report_id"], ["report.id"], name=op.f("fk_judgement_report_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_judgement")),
    )
    with op.batch_alter_table("judgement", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_judgement_report_id"), ["report_id"], unique=False)

    op.create_table(
        "kpi",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("better", sa.String(length=8), nullable=False),
        sa.Column("least_effect", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_kpi_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kpi")),
        sa.UniqueConstraint("job_id", "name", name=op.f("uq_kpi_job_id_name")),
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("report_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("dedup_key", sa.String(), nullable=False),
        sa.Column(
            "state",
            sa.Enum(
                "draft",
                "awaiting_approval",
                "queued",
                "sending",
                "sent",
                "deferred",
                "failed",
                "cancelled",
                name="outboxstate",
                native_enum=False,
                length=24,
            ),
            nullable=False,
        ),
        sa.Column("way", sa.String(length=16), nullable=False),
        sa.Column("rung", sa.Integer(), nullable=False),
        sa.Column("addressees", sa.JSON(), nullable=False),
        sa.Column("waiting", sa.JSON(), nullable=False),
        sa.Column("reached", sa.JSON(), nullable=False),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.Column("held", sa.JSON(), nullable=False),
        sa.Column("approved_by", sa.String(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("lease_until", sa.Double(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.Double(), nullable=False),
        sa.Column("last_error", sa.String(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("sent", sa.Double(), nullable=True),
        sa.Column("corrected", sa.Boolean(), nullable=False),
        sa.Column("digest_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(["digest_id"], ["outbox.id"], name=op.f("fk_outbox_digest_id")),
        sa.ForeignKeyConstraint(["report_id"], ["report.id"], name=op.f("fk_outbox_report_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sa.UniqueConstraint("dedup_key", name=op.f("uq_outbox_dedup_key")),
        sa.UniqueConstraint("message_id", name=op.f("uq_outbox_message_id")),
    )
    with op.batch_alter_table("outbox", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_outbox_report_id"), ["report_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_outbox_state"), ["state"], unique=False)

    op.create_table(
        "reply",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("report_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("sender", sa.String(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.Column("vouched", sa.Boolean(), nullable=False),
        sa.Column("pending", sa.Boolean(), nullable=False),
        sa.Column("received", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["report_id"], ["report.id"], name=op.f("fk_reply_report_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reply")),
        sa.UniqueConstraint("message_id", name=op.f("uq_reply_message_id")),
    )
    with op.batch_alter_table("reply", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_reply_pending"), ["pending"], unique=False)
        batch_op.create_index(batch_op.f("ix_reply_report_id"), ["report_id"], unique=False)

    op.create_table(
        "sighting",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("report_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("sha", sa.String(length=64), nullable=False),
        sa.Column("exact", sa.Boolean(), nullable=False),
        sa.Column("seen", sa.Double(), nullable=False),
        sa.Column("told", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["report_id"], ["report.id"], name=op.f("fk_sighting_report_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sighting")),
        sa.UniqueConstraint("report_id", "place", name=op.f("uq_sighting_report_id_place")),
    )
    op.create_table(
        "bisection",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("branch_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("tree", sa.String(), nullable=False),
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kpi_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("good", sa.String(length=64), nullable=False),
        sa.Column("bad", sa.String(length=64), nullable=False),
        sa.Column("recipe", sa.JSON(), nullable=False),
        sa.Column("history", sa.String(length=64), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("request_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("automatic", sa.Boolean(), nullable=False),
        sa.Column(
            "state",
            sa.Enum("waiting", "running", "done", "cancelled", name="bisectionstate", native_enum=False, length=24),
            nullable=False,
        ),
        sa.Column("stage", sa.String(length=32), nullable=False),
        sa.Column("verdict", sa.JSON(), nullable=True),
        sa.Column("verification", sa.JSON(), nullable=True),
        sa.Column("engine", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("finished", sa.Double(), nullable=True),
        sa.Column("reported", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["branch_id"], ["branch.id"], name=op.f("fk_bisection_branch_id")),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_bisection_job_id")),
        sa.ForeignKeyConstraint(["kpi_id"], ["kpi.id"], name=op.f("fk_bisection_kpi_id")),
        sa.ForeignKeyConstraint(["request_id"], ["request.id"], name=op.f("fk_bisection_request_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bisection")),
    )
    with op.batch_alter_table("bisection", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_bisection_state"), ["state"], unique=False)

    op.create_table(
        "boot",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("host_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("build_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("started", sa.Double(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("phase", sa.String(length=32), nullable=False),
        sa.Column("failure", sa.String(length=32), nullable=False),
        sa.Column("blame", sa.String(length=16), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["build_id"], ["build.id"], name=op.f("fk_boot_build_id")),
        sa.ForeignKeyConstraint(["host_id"], ["host.id"], name=op.f("fk_boot_host_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_boot")),
        sa.UniqueConstraint("key", name=op.f("uq_boot_key")),
    )
    op.create_table(
        "bounce",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("notification", sa.String(), nullable=False),
        sa.Column("outbox_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("diagnostic", sa.String(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["outbox_id"], ["outbox.id"], name=op.f("fk_bounce_outbox_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bounce")),
        sa.UniqueConstraint("notification", "address", name=op.f("uq_bounce_notification_address")),
    )
    with op.batch_alter_table("bounce", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_bounce_address"), ["address"], unique=False)
        batch_op.create_index(batch_op.f("ix_bounce_outbox_id"), ["outbox_id"], unique=False)

    op.create_table(
        "series",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("branch_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kpi_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("stale", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["branch_id"], ["branch.id"], name=op.f("fk_series_branch_id")),
        sa.ForeignKeyConstraint(["kpi_id"], ["kpi.id"], name=op.f("fk_series_kpi_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series")),
        sa.UniqueConstraint("branch_id", "kpi_id", name=op.f("uq_series_branch_id_kpi_id")),
    )
    with op.batch_alter_table("series", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_series_stale"), ["stale"], unique=False)

    op.create_table(
        "experiment",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("bisection_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("nodes", sa.JSON(), nullable=False),
        sa.Column("sha", sa.String(length=64), nullable=False),
        sa.Column("build_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("fresh_boot", sa.Boolean(), nullable=False),
        sa.Column(
            "state",
            sa.Enum("pending", "done", "lost", "skipped", name="experimentstate", native_enum=False, length=24),
            nullable=False,
        ),
        sa.Column("told", sa.JSON(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("check", sa.String(length=16), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["bisection_id"], ["bisection.id"], name=op.f("fk_experiment_bisection_id")),
        sa.ForeignKeyConstraint(["build_id"], ["build.id"], name=op.f("fk_experiment_build_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_experiment")),
    )
    with op.batch_alter_table("experiment", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_experiment_bisection_id_number"), ["bisection_id", "number"], unique=True)

    op.create_table(
        "step",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("series_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("head_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("parent_head_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("first", sa.Integer(), nullable=False),
        sa.Column("last", sa.Integer(), nullable=False),
        sa.Column("old_level", sa.Double(), nullable=False),
        sa.Column("new_level", sa.Double(), nullable=False),
        sa.Column("noise", sa.Double(), nullable=False),
        sa.Column("percent", sa.Double(), nullable=True),
        sa.Column("probability", sa.Double(), nullable=False),
        sa.Column("direction", sa.String(length=16), nullable=False),
        sa.Column(
            "state",
            sa.Enum(
                "suspected",
                "real",
                "refuted",
                "withdrawn",
                "bisecting",
                "closed",
                "accepted",
                name="stepstate",
                native_enum=False,
                length=24,
            ),
            nullable=False,
        ),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("engine", sa.String(length=32), nullable=False),
        sa.Column("found", sa.Double(), nullable=False),
        sa.Column("bisection_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(["bisection_id"], ["bisection.id"], name=op.f("fk_step_bisection_id")),
        sa.ForeignKeyConstraint(["head_id"], ["head.id"], name=op.f("fk_step_head_id")),
        sa.ForeignKeyConstraint(["parent_head_id"], ["head.id"], name=op.f("fk_step_parent_head_id")),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name=op.f("fk_step_series_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_step")),
    )
    with op.batch_alter_table("step", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_step_bisection_id"), ["bisection_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_step_series_id"), ["series_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_step_state"), ["state"], unique=False)

    op.create_table(
        "finding",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("report_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("bisection_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("step_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("told", sa.Boolean(), nullable=False),
        sa.Column("changed", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["bisection_id"], ["bisection.id"], name=op.f("fk_finding_bisection_id")),
        sa.ForeignKeyConstraint(["report_id"], ["report.id"], name=op.f("fk_finding_report_id")),
        sa.ForeignKeyConstraint(["step_id"], ["step.id"], name=op.f("fk_finding_step_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_finding")),
        sa.UniqueConstraint("bisection_id", name=op.f("uq_finding_bisection_id")),
    )
    with op.batch_alter_table("finding", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_finding_report_id"), ["report_id"], unique=False)

    op.create_table(
        "run",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("build_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("group_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("branch_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("experiment_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("step_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("request_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("purpose", sa.Integer(), nullable=False),
        sa.Column(
            "state",
            sa.Enum(
                "planned",
                "queued",
                "leased",
                "running",
                "done",
                "failed",
                "cancelled",
                name="runstate",
                native_enum=False,
                length=24,
            ),
            nullable=False,
        ),
        sa.Column(
            "failure",
            sa.Enum("", "untestable", "run", "infra", name="failurekind", native_enum=False, length=24),
            nullable=False,
        ),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("fresh_boot", sa.Boolean(), nullable=False),
        sa.Column("wanted_host_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("host_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("boot_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("environment_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.Double(), nullable=False),
        sa.Column("started", sa.Double(), nullable=True),
        sa.Column("finished", sa.Double(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("host_s", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["boot_id"], ["boot.id"], name=op.f("fk_run_boot_id")),
        sa.ForeignKeyConstraint(["branch_id"], ["branch.id"], name=op.f("fk_run_branch_id")),
        sa.ForeignKeyConstraint(["build_id"], ["build.id"], name=op.f("fk_run_build_id")),
        sa.ForeignKeyConstraint(["environment_id"], ["environment.id"], name=op.f("fk_run_environment_id")),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiment.id"], name=op.f("fk_run_experiment_id")),
        sa.ForeignKeyConstraint(["group_id"], ["host_group.id"], name=op.f("fk_run_group_id")),
        sa.ForeignKeyConstraint(["host_id"], ["host.id"], name=op.f("fk_run_host_id")),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_run_job_id")),
        sa.ForeignKeyConstraint(["request_id"], ["request.id"], name=op.f("fk_run_request_id")),
        sa.ForeignKeyConstraint(["step_id"], ["step.id"], name=op.f("fk_run_step_id")),
        sa.ForeignKeyConstraint(["wanted_host_id"], ["host.id"], name=op.f("fk_run_wanted_host_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
    )
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_run_build_id_job_id_state"), ["build_id", "job_id", "state"], unique=False)
        batch_op.create_index(batch_op.f("ix_run_experiment_id"), ["experiment_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_run_finished"), ["finished"], unique=False)
        batch_op.create_index(batch_op.f("ix_run_job_id"), ["job_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_run_request_id"), ["request_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_run_state_group_id_purpose_id"), ["state", "group_id", "purpose", "id"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_run_step_id"), ["step_id"], unique=False)

    op.create_table(
        "artifact",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("build_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["build_id"], ["build.id"], name=op.f("fk_artifact_build_id")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_artifact_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_artifact")),
    )
    with op.batch_alter_table("artifact", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_artifact_build_id"), ["build_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_artifact_run_id"), ["run_id"], unique=False)

    op.create_table(
        "sample",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kpi_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["kpi_id"], ["kpi.id"], name=op.f("fk_sample_kpi_id")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_sample_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sample")),
        sa.UniqueConstraint("run_id", "kpi_id", name=op.f("uq_sample_run_id_kpi_id")),
    )
    with op.batch_alter_table("sample", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_sample_kpi_id"), ["kpi_id"], unique=False)
