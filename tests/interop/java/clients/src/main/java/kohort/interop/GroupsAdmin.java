package kohort.interop;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;

/** What an administrator sees of groups and does to them. --topic T, of one partition and empty. */
final class GroupsAdmin {
    static Object run(Options options) throws Exception {
        var partition = new TopicPartition(options.text("topic"), 0);
        String group = "admin-" + partition.topic();
        var found = new LinkedHashMap<String, Object>();
        try (var admin = options.admin(); var producer = options.producer(Map.of())) {
            producer.send(new ProducerRecord<>(partition.topic(), 0, null, "value")).get();
            var member = new Member(options, partition.topic(), Map.of("group.id", group, "client.id", "me", "group.instance.id", "instance"));
            member.start();
            while (member.read.isEmpty()) {
                Interop.check(member.failure == null, "the member failed: " + member.failure);
                Thread.sleep(10);
            }
            found.put("listed", listed(admin, new ListGroupsOptions(), group));
            found.put("listed as classic", listed(admin, new ListGroupsOptions().withTypes(Set.of(GroupType.CLASSIC)), group));
            found.put("listed as share", listed(admin, new ListGroupsOptions().withTypes(Set.of(GroupType.SHARE)), group));
            found.put("listed as empty", listed(admin, new ListGroupsOptions().inGroupStates(Set.of(GroupState.EMPTY)), group));
            var description = admin.describeConsumerGroups(Set.of(group)).all().get().get(group);
            var seen = description.members().iterator().next();
            found.put("described", List.of(description.groupState().toString(), description.partitionAssignor(), description.type().toString(),
                    seen.clientId(), seen.groupInstanceId().orElse(""), seen.assignment().topicPartitions().size()));
            found.put("described as classic", admin.describeClassicGroups(Set.of(group)).all().get().get(group).protocol());
            found.put("described unknown", Interop.errorOf(() -> admin.describeConsumerGroups(Set.of("unknown")).all().get()));
            found.put("delete while in use", Interop.errorOf(() -> admin.deleteConsumerGroups(Set.of(group)).all().get()));
            found.put("delete offset in use", Interop.errorOf(() -> admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all().get()));
            found.put("alter offset in use", Interop.errorOf(() -> alter(admin, group, partition, 0)));

            member.close();
            admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions(
                    Set.of(new MemberToRemove("instance")))).all().get();
            found.put("then", listed(admin, new ListGroupsOptions().inGroupStates(Set.of(GroupState.EMPTY)), group));
            found.put("committed", offset(admin, group, partition));
            alter(admin, group, partition, 7);
            found.put("altered", offset(admin, group, partition));
            admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all().get();
            found.put("offset deleted", offset(admin, group, partition));
            admin.deleteConsumerGroups(Set.of(group)).all().get();
            found.put("deleted", listed(admin, new ListGroupsOptions(), group));
            found.put("delete again", Interop.errorOf(() -> admin.deleteConsumerGroups(Set.of(group)).all().get()));
        }
        return found;
    }

    private static Object listed(Admin admin, ListGroupsOptions options, String group) throws Exception {
        return admin.listGroups(options).all().get().stream().filter(listing -> listing.groupId().equals(group))
                .map(listing -> List.of(listing.groupState().map(Object::toString).orElse(""), listing.type().map(Object::toString).orElse(""), listing.protocol()))
                .toList();
    }

    private static void alter(Admin admin, String group, TopicPartition partition, long offset) throws Exception {
        admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(offset, Optional.of(0), "by hand"))).all().get();
    }

    private static Object offset(Admin admin, String group, TopicPartition partition) throws Exception {
        var offset = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata(group).get().get(partition);
        return offset == null ? null : List.of(offset.offset(), offset.metadata());
    }
}
